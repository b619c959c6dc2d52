"""What the processes say of themselves: logs, metrics, rate-limited warnings."""
