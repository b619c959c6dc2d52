"""A broker's complaints are found by the names in them, whatever stands on the lines that follow."""

from pathlib import Path

import pytest

from tests.support.broker_log import complaints

NAMES = ("g0123456789", "t0123456789")
WHEN = "2026-11-27 03:20:42,671"
OURS = [
    "WARN GroupMetadataManager: group g0123456789.aggregator is odd",
    "ERROR ReplicaManager: [ReplicaManager broker=1] Error processing append on t0123456789.scored-3",
    "WARN GroupMetadataManager: group: g0123456789 has received offset commits from consumers as well as transactional",
    "WARN KafkaApis: rejected clientId=safe, from 127.0.0.1",
    "WARN GroupCoordinator: member safe-e592c24c-63a0-4009-80c2-a79880852445 has left",
]
OTHERS = [
    "INFO GroupCoordinator: group g0123456789 is now empty",
    "WARN QuorumController: Performing controller activation",
    "WARN GroupMetadataManager: group g9999999999 is odd",
]


@pytest.mark.parametrize("line", OURS)
def test_a_warning_or_an_error_with_a_name_of_ours_is_a_complaint(line: str, tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    log.write_text("".join(f"{WHEN} {each}\n" for each in [*OTHERS, line, line]))
    assert complaints(log, NAMES, of_any_client=True) == [line]


def test_a_name_on_the_lines_below_counts_too(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    log.write_text("2026-11-27T03:20:42,671 ERROR KafkaApis: Error\nCaused by: no offset of t0123456789.input-0\n")
    [told] = complaints(log, NAMES)
    assert told == "ERROR KafkaApis: Error | Caused by: no offset of t0123456789.input-0"
