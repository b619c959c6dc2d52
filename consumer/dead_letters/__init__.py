"""`safe dead-letters`: what can never be scored, listed, shown and, once its cause is fixed, sent again."""
