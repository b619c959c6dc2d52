"""`safe offsets`: where the scorers' group continues to read its input, shown and, with notes of SAFE, changed."""
