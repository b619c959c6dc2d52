"""`safe results`: what workers have scored, as a live table or as events, and the outputs of a batch."""
