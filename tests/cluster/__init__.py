"""What three brokers and their workers go through in every run of the tests; `make certify` is the rest."""
