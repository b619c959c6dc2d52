"""The tests' own broker, client, oracle, worker processes and cases."""
