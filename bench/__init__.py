"""Measurements of speed and memory. They are run by hand, never in the tests."""
