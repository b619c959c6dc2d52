"""Scoring without Kafka: from files of outputs to scorecards, reports, gate and recomputation (contract, section 5)."""
