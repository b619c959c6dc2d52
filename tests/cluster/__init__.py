"""What is tried against a cluster of several brokers."""
