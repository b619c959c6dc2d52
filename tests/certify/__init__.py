"""What a cluster of three brokers and its workers are put through before the guarantees are claimed: `make certify`."""
