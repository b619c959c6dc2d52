"""`python -m tests.certify.mutants`: take each guard of commit, take-up and restore away, and see a test go red.

A guard that no test misses is one that the next change may lose. Each mutant is applied to a copy of the product; the
test named beside it, which needs no broker, must fail on it. What only a cluster can miss has no such test:
`python -m tests.certify --without NAME` tries the drills on any of them. `--list` lists them all.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.kafka_broker import PROJECT

RUN_SECONDS = 120.0
GROUP_OFFSETS = "consumer/kafka/group_offsets.py"
WRITER = "consumer/kafka/writer.py"
TURNS = "consumer/kafka/turns.py"
TRANSACTION = "consumer/kafka/open_transaction.py"
PRODUCER = "consumer/kafka/own_producer.py"
TRANSACTIONS = "consumer/kafka/transactions.py"
SUBSCRIPTION = "consumer/kafka/subscription.py"
INTERNALS = "consumer/kafka/aiokafka_internals.py"
STAGE = "consumer/worker/poll_loop.py"
FENCING = "consumer/worker/repeated_fences.py"
PARTITION = "consumer/worker/partition_loop.py"
CLOCK = "consumer/kafka/brokers_clock.py"
SCORER = "consumer/worker/scorer.py"
FORGETTING = "consumer/worker/forgetting.py"
AGGREGATOR = "consumer/worker/aggregator.py"
RESUME = "consumer/worker/offset_check.py"
UNMARKED = "consumer/worker/unmarked_offsets.py"
RESTORE = "consumer/worker/restore.py"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A guard by what the product does without it: `old` stands once in `file`, and becomes `new`."""

    name: str
    file: str
    old: str
    new: str
    test: str | None

    def apply(self, checkout: Path) -> None:
        """Change the file in a copy of the product; AssertionError where the guard is not found as it was."""
        path = checkout / self.file
        text = path.read_text(encoding="utf-8")
        found = text.count(self.old)
        assert found == 1, f"{self.name}: {self.file} holds the guard {found} times, not once"
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


MUTANTS = (
    # --- the committed offset
    Mutant(
        "offset_without_proof", GROUP_OFFSETS,
        "                _raise_for(await self._proof.give(link), self._group, self._witness.topic)\n", "",
        "test_group_offsets",
    ),
    Mutant(
        "offset_of_another_connection", GROUP_OFFSETS,
        "return await self._fetch(link, wanted)", "return await self._fetch(await self._link(), wanted)",
        "test_group_offsets",
    ),
    Mutant(
        "refused_proof_taken", GROUP_OFFSETS,
        "_raise_for(await self._proof.give(link), self._group, self._witness.topic)", "await self._proof.give(link)",
        "test_group_offsets",
    ),
    Mutant("any_generation", GROUP_OFFSETS, "self._group, link.generation,", "self._group, -1,", "test_group_offsets"),
    Mutant(
        "any_generation_in_a_transaction", GROUP_OFFSETS,
        "return await self._committed(link, link.generation)", "return await self._committed(link, -1)",
        "test_group_offsets",
    ),
    Mutant(
        "generations_not_tried", GROUP_OFFSETS, "            await self._check_that_generations_count(link)\n", "",
        "test_group_offsets",
    ),
    Mutant(
        "proof_committed", GROUP_OFFSETS,
        "self._transactions.end(self._producer, commit=False)", "self._transactions.end(self._producer, commit=True)",
        "test_group_offsets",
    ),
    Mutant(
        "proof_in_doubt_used_again", GROUP_OFFSETS,
        "if self._producer is None or self._is_open:  #", "if self._producer is None:  #", "test_group_offsets",
    ),
    Mutant(
        "partial_answer_is_no_offset", GROUP_OFFSETS,
        "if not wanted <= answer.keys():", "answer = {at: answer.get(at) for at in wanted}\n        if False:",
        "test_group_offsets",
    ),
    Mutant(
        "error_of_a_partition_is_no_offset", GROUP_OFFSETS,
        "                _raise_for(found[\"error_code\"], self._group, self._topic)\n", "", "test_group_offsets",
    ),
    Mutant(
        "answer_from_before_the_question", GROUP_OFFSETS,
        "if self.proven_at <= called_at or not", "if not", "test_group_offsets",
    ),
    Mutant("distrusted_node_kept", GROUP_OFFSETS, "            link.distrust()\n", "", "test_group_offsets"),
    Mutant(
        "heartbeats_date_from_their_answer", INTERNALS,
        "            note(sent_at)", "            note(time.monotonic())", "test_aiokafka_internals",
    ),
    Mutant(
        "assignments_date_from_their_answer", SUBSCRIPTION,
        "self._note_heartbeat(self._synced_at)", "self._note_heartbeat(time.monotonic())", "test_subscription",
    ),
    # --- the commit
    Mutant(
        "sends_not_awaited", WRITER,
        "            acknowledged(await sent)\n", "            pass\n", "test_writer",
    ),
    Mutant(
        "offsets_before_the_acknowledgements", TRANSACTION,
        "            while pending:\n", "            if pending:\n", "test_turns",
    ),
    Mutant(
        "generation_read_at_the_commit", TRANSACTION,
        "MemberOffsetsRequest(identity, group, member,",
        "MemberOffsetsRequest(identity, group, self._subscription.assigned_as or member,", "test_turns",
    ),
    Mutant("generations_mixed", TURNS, "return part.outgoing.member, part.is_mark",
           "return NOBODY, part.is_mark", "test_turns"),
    Mutant("marks_and_slices_mixed", TURNS, "return part.outgoing.member, part.is_mark",
           "return part.outgoing.member, False", "test_turns"),
    Mutant(
        "partition_without_an_answer_committed", TRANSACTION,
        "if codes.keys() != offsets.keys():", "if False:", "test_turns",
    ),
    Mutant(
        "refused_offsets_committed", TRANSACTION,
        "            wrong = {code for code in codes.values() if code}\n", "            wrong = set[int]()\n",
        "test_turns",
    ),
    Mutant("mark_committed", TURNS, "await transaction.end(commit=bool(offsets))",
           "await transaction.end(commit=True)", "test_turns"),
    Mutant("mark_while_rebalancing", TURNS, "if member is None or partition not in self.own.gained:",
           "if partition not in self.own.gained:", "test_turns"),
    Mutant("turn_without_end", TURNS,
           "timeout(self._timeout_seconds):\n                    await self._transact",
           "timeout(None):\n                    await self._transact", "test_turns"),
    Mutant(
        "failed_producer_kept", PRODUCER,
        "        writing, self._writing = self._writing, None\n        if writing is None:",
        "        writing = self._writing\n        if writing is None:", "test_turns",
    ),
    Mutant(
        "producer_of_a_cancelled_turn_kept", TURNS,
        "            except asyncio.CancelledError:\n"
        "                await self.own.give_up(abort=transaction.can_be_aborted)\n",
        "            except asyncio.CancelledError:\n", "test_turns",
    ),
    Mutant(
        "abort_with_answers_out", TRANSACTION,
        "self._producer is not None and not self._unanswered and not self.end_is_out", "self._producer is not None",
        "test_turns",
    ),
    Mutant("abort_believed_without_an_answer", PRODUCER, "        self._open = self._writes_for\n", "", "test_turns"),
    Mutant("answered_abort_forgotten", PRODUCER, "                        self._open = None\n", "", "test_turns"),
    Mutant(
        "sent_again_in_the_same_epoch", PRODUCER,
        "            if self._subscription.owns(partition):\n", "            if False:\n", "test_turns",
    ),
    Mutant(
        "what_is_open_forgotten_in_a_rebalance", PRODUCER,
        "            if self._subscription.assigned_as != member:  # nobody", "            if False:  # nobody",
        "test_turns",
    ),
    Mutant("doubtful_commit_believed", TURNS, "if transaction.end_is_out and not parts[0].is_mark:", "if False:",
           "test_turns"),
    Mutant(
        "any_offset_is_that_of_before", TURNS,
        "offset is None or offset != self._committed.get(each.partition)", "False", "test_turns",
    ),
    Mutant(
        "note_of_an_offset_ignored", TURNS,
        "if all(offset == each.after for", "if all((offset or (0,))[0] == (each.after or (1,))[0] for", "test_turns",
    ),
    Mutant(
        "doubt_of_a_zombie_fences", PRODUCER,
        "        await self._subscription.confirm(partition)\n", "", "test_turns",
    ),
    Mutant("started_as_another_member", PRODUCER,
           "        if self._subscription.assigned_as != member:\n            raise OutOfGroup(\"the consumer group is "
           "rebalancing\")\n        await self._start", "        await self._start", "test_turns"),
    Mutant(
        "used_id_started_without_a_confirmation", PRODUCER,
        "        if partition not in self._unused:\n            await self._confirmed_start(partition, member)",
        "        if partition not in self._unused:\n            await self._start(partition, member)", "test_turns",
    ),
    Mutant("used_id_used_again", PRODUCER, "        self._unused.discard(partition)\n", "", "test_turns"),
    Mutant(
        "gained_id_not_ended", PRODUCER,
        "if partition not in self._unused or self._starts[partition].member != member:", "if False:", "test_turns",
    ),
    Mutant(
        "gained_id_ended_in_an_earlier_generation", PRODUCER,
        "if partition not in self._unused or self._starts[partition].member != member:",
        "if partition not in self._unused:", "test_turns",
    ),
    Mutant("gained_id_in_use_ended", PRODUCER, "            async with self.in_use:  # given up",
           "            if True:  # given up", "test_turns"),
    Mutant("open_id_not_ended_at_a_gain", PRODUCER,
           "        await self.end_open(member)\n        if partition", "        if partition", "test_turns"),
    Mutant("open_id_not_ended_before_the_next", PRODUCER,
           "        await self.end_open(member)\n        partition = min(", "        partition = min(", "test_turns"),
    Mutant(
        "id_of_a_partition_that_is_not_ours", PRODUCER,
        "each for each in self.gained if self._subscription.owns(each)", "each for each in self.gained", "test_turns",
    ),
    Mutant("id_of_a_partition_that_has_left", PRODUCER, "        if self._writes_for not in self.gained:\n",
           "        if False:\n", "test_turns"),
    Mutant(
        "fence_of_one_partition_only", TURNS,
        "if self._turns.own.times_fenced != self._times_fenced:", "if False:", "test_turns",
    ),
    Mutant("fence_forgotten_while_waiting", TURNS,
           "any(each.times_fenced != self.own.times_fenced for each in parts)", "False", "test_turns"),
    Mutant("fence_unnoticed", TURNS, "            self.own.note_fence()\n", "            pass\n", "test_turns"),
    Mutant("foreign_epoch_unnoticed", PRODUCER,
           "known.member == member and identity", "False and identity", "test_turns"),
    Mutant("partition_that_leaves_committed", TURNS, "            running.cancel()\n", "            pass\n",
           "test_turns"),
    Mutant(
        "refused_batch_sent_for_ever", TRANSACTION, "            self.refused = place\n", "            pass\n",
        "test_turns",
    ),
    Mutant(
        "silence_asked_again", TRANSACTIONS,
        "            raise Unanswered from error\n",
        "            return await self._ask(transactional_id, request)\n", "test_transactions",
    ),
    Mutant(
        "moved_coordinator_asked_again", TRANSACTIONS,
        "                self._nodes.pop(transactional_id, None)\n            await asyncio.sleep(pauses",
        "                pass\n            await asyncio.sleep(pauses", "test_transactions",
    ),
    Mutant("refusal_of_a_transaction_ignored", TRANSACTIONS, "            if final:\n", "            if False:\n",
           "test_transactions"),
    Mutant("silent_connection_kept", TRANSACTIONS, "        connection.close()\n", "        pass\n",
           "test_transactions"),
    Mutant(
        "changelog_not_last", WRITER,
        "self._note_time, last=self._changelog)", "self._note_time)", "test_writer",
    ),
    # --- the time
    Mutant("mark_by_our_own_clock", TURNS, "self.outgoing(NO_TIMESTAMP)", "self.outgoing(0)", "test_turns"),
    Mutant("plain_mark_by_our_own_clock", WRITER, "Outgoing(NO_TIMESTAMP)", "Outgoing(0)", "test_writer"),
    Mutant(
        "brokers_time_not_asked_for", TURNS,
        "        await self._turns.learn_time(topic, partition, offset)\n", "", "test_turns",
    ),
    Mutant("age_by_our_own_clock", CLOCK, "min(self.now_ms(), self._own_ms())", "self._own_ms()", "test_brokers_clock"),
    Mutant(
        "our_own_clock_may_not_object", CLOCK,
        "min(self.now_ms(), self._own_ms())", "self.now_ms()", "test_brokers_clock",
    ),
    Mutant("a_jump_is_an_age", CLOCK, "self.is_known or self.has_jumped:", "self.is_known:", "test_brokers_clock"),
    Mutant(
        "scorer_knows_no_time", SCORER,
        "            await self._writer.learn_time(settings.scored_topic, partition, MARK_KEY, self._headers)\n",
        "            assert partition >= 0\n", "test_scorer",
    ),
    Mutant(
        "older_rows_by_a_workers_clock", FORGETTING,
        "first_seen_at if folded_at is None else folded_at", "row.last_scored_at if row else None", "test_aggregator",
    ),
    # --- the take-up
    Mutant(
        "fence_without_confirmation", PARTITION,
        "        await self._asked(self._subscription.confirm)\n", "        await self._granted.wait()\n",
        "test_poll_loop",
    ),
    Mutant(
        "confirmation_waits_for_offsets", SUBSCRIPTION, "self._offsets.of(())", "self._offsets.of({partition})",
        "test_subscription",
    ),
    Mutant(
        "offset_before_the_restore", PARTITION,
        "        await logic.restore(writer)\n        committed = await self._asked(self._subscription.committed)\n",
        "        committed = await self._asked(self._subscription.committed)\n        await logic.restore(writer)\n",
        "test_poll_loop",
    ),
    Mutant(
        "frozen_answer_taken", PARTITION,
        "if self._granted.is_set() and self._subscription.heartbeat_is_fresh():", "if self._granted.is_set():",
        "test_poll_loop",
    ),
    Mutant(
        "less_than_committed_here", PARTITION, "        self._check_not_less(committed)\n", "", "test_poll_loop",
    ),
    Mutant(
        "contradictions_for_ever", PARTITION,
        "if now - since > _CONTRADICTION_SECONDS:", "if now < since:", "test_poll_loop",
    ),
    Mutant(
        "kept_over_a_missed_generation", STAGE,
        "generation == self._generation + 1", "generation > self._generation", "test_poll_loop",
    ),
    Mutant(
        "writer_kept_after_a_failure", PARTITION,
        "            await self._closing.dispose()  # if we are cancelled here, the next call awaits it\n", "",
        "test_poll_loop",
    ),
    Mutant(
        "jump_from_beyond_the_end", STAGE,
        "if gap.offset < beginning:", "if gap.offset != beginning:", "test_poll_loop",
    ),
    Mutant(
        "fences_not_counted", PARTITION, "        self._fences.count(writer.identity)\n", "", "test_poll_loop",
    ),
    Mutant(
        "refusals_taken_for_another_producer", FENCING,
        " or not now.tells_of_another_since(before)", "", "test_poll_loop",
    ),
    Mutant(
        "unstable_offset_taken", "consumer/kafka/protocol.py",
        "topics, True, no_tags", "topics, False, no_tags", "test_group_offsets",
    ),
    # --- offsets that SAFE did not commit
    Mutant("offset_of_a_stranger_taken", SCORER, "if not is_noted(*committed):", "if False:", "test_scorer"),
    Mutant(
        "copied_note_taken", "consumer/wire/offset_note.py",
        "return note == note_of(offset)", 'return offset >= 0 and note.startswith("next_offset=")', "test_scorer",
    ),
    Mutant(
        "read_before_the_note", SCORER, "            return 0  # the chore comes first\n", "            pass\n",
        "test_scorer",
    ),
    Mutant(
        "stranger_of_all_partitions_taken", UNMARKED,
        "scored.schema >= FIRST_SCHEMA_WITH_NOTES", "scored.schema < 0", "test_unmarked_offsets",
    ),
    Mutant(
        "notes_of_others_ignored", UNMARKED,
        "return not any(is_noted(*each) for each in (await self._committed()).values())", "return True",
        "test_unmarked_offsets",
    ),
    # --- the restore
    Mutant(
        "restore_to_the_leaders_end", "consumer/kafka/reader.py",
        "        first = (await consumer.beginning_offsets([where]))[where]\n",
        '        async with _partition_client(connection, where, "read_uncommitted") as other:\n'
        "            first, end = await _bounds(other, where)\n",
        None,
    ),
    Mutant(
        "restore_beyond_the_mark", "consumer/kafka/reader.py",
        "records[: bisect_left(records, end, key=_offset)]", "records", "test_reader",
    ),
    Mutant(
        "restore_without_end", "consumer/kafka/reader.py",
        "elif now - moved_at > silent_seconds:", "elif False:", "test_reader",
    ),
    Mutant("restore_one_short", AGGREGATOR, "restore.run(end=mark + 1)", "restore.run(end=mark)", "test_aggregator"),
    Mutant(
        "older_state_taken", AGGREGATOR,
        "            check_same_transaction(progress, committed, where, state_topic)\n", "            pass\n",
        "test_aggregator",
    ),
    Mutant(
        "count_of_transactions_ignored", RESUME,
        "(progress.next_offset, ours), (committed.offset, theirs)", "(progress.next_offset, 0), (committed.offset, 0)",
        "test_aggregator",
    ),
    Mutant(
        "transactions_not_counted", AGGREGATOR, "        self._transactions += 1\n", "", "test_aggregator",
    ),
    Mutant(
        "topic_made_again_taken", AGGREGATOR,
        "        check_same_topic(progress, self._settings)\n", "", "test_aggregator",
    ),
    Mutant(
        "missing_rows_not_counted", AGGREGATOR,
        "            restore.check_counts()\n", "            pass\n", "test_aggregator",
    ),
    Mutant(
        "headers_checked_once", RESTORE,
        "if record.headers != self._sound_headers:", "if self._sound_headers is None:", "test_aggregator",
    ),
    Mutant(
        "late_row_of_a_batch_wins", RESTORE,
        "if batch.row is None or row.moved >= batch.row.moved:", "if True:", "test_aggregator",
    ),
)  # fmt: skip


def copied(folder: Path, mutants: Sequence[Mutant]) -> Path:
    """Copy the product and its tests, and take some of the guards away there."""
    for part in ("consumer", "safe_core", "safe_scorer", "tests", "config", "docs"):
        shutil.copytree(PROJECT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT / "pyproject.toml", folder)
    for mutant in mutants:
        mutant.apply(folder)
    return folder


def failed(test: str, mutants: Sequence[Mutant]) -> tuple[bool, str]:
    """Run a file of tests on a copy without these guards; returns whether a test failed, and pytest's last line."""
    with tempfile.TemporaryDirectory(prefix="safe-mutant-") as name:
        copy = copied(Path(name), mutants)
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"tests/consumer/{test}.py"],
                cwd=copy,
                env={**os.environ, "PYTHONPATH": str(copy)},
                capture_output=True,
                text=True,
                check=False,
                timeout=RUN_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return True, f"no end within {RUN_SECONDS:g} s"
    last = [line for line in done.stdout.splitlines() if line.strip()][-1:]
    return done.returncode == 1, last[0] if last else done.stderr[-200:]


def named(names: Sequence[str]) -> list[Mutant]:
    """Return the mutants of these names; KeyError for one that there is not."""
    known = {mutant.name: mutant for mutant in MUTANTS}
    return [known[name] for name in names]


def main(arguments: Sequence[str]) -> int:
    """Return how many mutants live."""
    parser = argparse.ArgumentParser(prog="python -m tests.certify.mutants", description=__doc__)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args(arguments)
    chosen = named(options.names) if options.names else list(MUTANTS)
    if options.list:
        print(*(f"{mutant.name}: {mutant.file}, {mutant.test or 'a cluster'}" for mutant in chosen), sep="\n")
        return 0
    sick = [test for test in sorted({mutant.test for mutant in chosen if mutant.test}) if failed(test, ())[0]]
    if sick:
        print(f"{', '.join(sick)} fail without any mutant", file=sys.stderr)
        return len(chosen)
    living = sum(not _dies(mutant, mutant.test) for mutant in chosen if mutant.test)
    print(f"{living} mutants live")
    return living


def _dies(mutant: Mutant, test: str) -> bool:
    is_dead, last = failed(test, [mutant])
    print(f"{'died ' if is_dead else 'LIVES'} {mutant.name}: {last}", flush=True)
    return is_dead


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
