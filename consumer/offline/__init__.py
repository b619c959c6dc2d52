"""Scoring without Kafka: from files of outputs to scorecards, reports and verdicts (contract.md, "Files")."""
