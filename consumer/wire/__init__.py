"""What the topics hold: values, keys and headers of every record, written and read."""
