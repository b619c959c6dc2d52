"""`safe worker`: its two roles, the life of a partition, and the process around them."""
