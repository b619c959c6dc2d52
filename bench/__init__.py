"""How fast, and at what cost: run by hand, never in the tests."""
