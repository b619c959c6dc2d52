"""What the diagnosis gets right, on every labelled set, beside the bounds that it must keep: `make yardstick`."""
