"""What only a real Apache Kafka can show."""
