"""`safe demo`: broker, topics, worker and sample traffic in one command, and a scorecard that moves as results come."""

from consumer.demo.run import run_demo

__all__ = ["run_demo"]
