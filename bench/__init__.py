"""Measurements of speed, of memory, and of what the diagnosis gets right. They are run by hand, never in the tests."""
