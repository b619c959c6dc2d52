"""What stands in topics: values, keys and headers of every record, written and read."""
