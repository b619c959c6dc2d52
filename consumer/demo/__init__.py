"""`safe demo`: broker, topics, worker and sample traffic in one command, and a scorecard that moves as results come."""
