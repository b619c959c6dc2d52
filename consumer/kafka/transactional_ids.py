"""The transactional ids that SAFE uses: permissions on a broker name them (docs/reference/permissions.md)."""


def of_worker(group_id: str, topic: str, partition: int) -> str:
    """The id of a producer that may write for a partition that a worker reads, and for others that it owns."""
    return f"{group_id}:{topic}:{partition}"


def of_proof(group_id: str, topic: str, process: str) -> str:
    """The id for transactions of a process that are always aborted, which show who a group's coordinator is."""
    return f"{group_id}:{topic}:proof-{process}"


def of_publish_cases(topic: str) -> str:
    """The id of `safe publish-cases`: two runs for one topic fence each other."""
    return f"safe-publish-cases:{topic}"
