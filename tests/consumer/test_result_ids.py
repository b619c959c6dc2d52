"""Whether the ids of results have the id of the input topic, and when a topic that was created again is refused."""

from collections.abc import Sequence
from typing import Literal

import pytest

from consumer.errors import ConfigurationError, Transient
from consumer.kafka.protocol import spelled_id
from consumer.wire.changelog import InputTopic, ProgressRow
from consumer.worker.group_state import GroupState, Ownership
from consumer.worker.result_ids import ResultIds, named_input_topic, was_created_again


def topics(topic_id: str | None, name: str | None = "outputs") -> list[InputTopic]:
    return [InputTopic(topic_id, is_in_result_ids=flag, name=name) for flag in (True, False)]


BY_ID, BY_NAME = topics("one")
EARLIER_BY_ID, EARLIER_BY_NAME = topics("earlier")
RENAMED_BY_ID, RENAMED_BY_NAME = topics("earlier", "outputs.before")
NAMELESS_BY_ID, NAMELESS_BY_NAME = topics("earlier", None)
_, WITHOUT_ID = topics(None)
UPGRADED = ProgressRow("g", 1, 4, 9)
"""What a version before this one has written."""


def row(scored: InputTopic | None) -> ProgressRow:
    return ProgressRow("g", 2, 4, 9, input=scored)


def inputs(*rows: InputTopic | ProgressRow | None) -> Sequence[InputTopic]:
    """What the state says that was scored; None is a row that was written before anything was."""
    progress = [each if isinstance(each, ProgressRow) else row(each) for each in rows]
    return GroupState([Ownership("g", is_guarded=True, progress=each) for each in progress]).inputs


def decided(
    *rows: InputTopic | ProgressRow | None, topic_id: str | None = "one", chosen: ResultIds | None = None
) -> InputTopic | Literal["refused", "wait"]:
    try:
        return named_input_topic("outputs", topic_id, chosen, inputs(*rows))
    except ConfigurationError:
        return "refused"
    except Transient:
        return "wait"


def test_a_new_installation_has_the_topics_id_in_its_ids() -> None:
    assert decided() == BY_ID
    assert decided(None, None) == BY_ID, "rows that were written before anything was scored"


def test_one_that_has_scored_keeps_the_form_that_it_has() -> None:
    assert decided(UPGRADED, None) == BY_NAME
    assert decided(row(UPGRADED.last_input), None) == BY_NAME, "its row was written again by this version"
    assert decided(None, WITHOUT_ID) == BY_NAME
    assert decided(None, BY_NAME) == BY_NAME
    assert decided(None, BY_ID) == BY_ID  # one partition has had no record since
    assert decided(UPGRADED, BY_ID) == BY_ID
    assert decided(BY_NAME, BY_ID) == BY_ID


def test_a_topic_with_another_name_is_another_topic() -> None:
    assert decided(RENAMED_BY_NAME) == BY_NAME
    assert decided(RENAMED_BY_ID) == BY_ID
    assert decided(RENAMED_BY_NAME, EARLIER_BY_NAME) == "refused"
    assert decided(NAMELESS_BY_NAME) == "refused", "it may be of this name"


def test_a_setting_says_otherwise() -> None:
    assert decided(None, BY_NAME, chosen="topic_id") == BY_ID
    assert decided(BY_ID, chosen="topic_name") == decided(chosen="topic_name") == BY_NAME


def test_a_topic_that_was_created_again_is_refused_where_its_name_alone_counts() -> None:
    assert decided(EARLIER_BY_NAME, None) == "refused"
    assert decided(EARLIER_BY_NAME, BY_NAME) == "refused"  # the other partition has not seen it yet
    assert decided(EARLIER_BY_ID, chosen="topic_name") == "refused"
    assert decided(EARLIER_BY_NAME, chosen="topic_id") == BY_ID
    assert decided(EARLIER_BY_ID) == BY_ID


def test_the_refusal_names_both_topics_and_both_remedies() -> None:
    with pytest.raises(ConfigurationError) as raised:
        named_input_topic("outputs", "one", None, [EARLIER_BY_NAME])
    words = ("outputs was deleted and created again", "id earlier", "id one", "Starting over", "SAFE_V0_RESULT_IDS")
    for word in words:
        assert word in str(raised.value)


def test_brokers_that_report_no_ids_leave_the_name_alone() -> None:
    assert decided(topic_id=None) == WITHOUT_ID
    assert decided(None, EARLIER_BY_NAME, topic_id=None) == WITHOUT_ID
    assert decided(topic_id=None, chosen="topic_name") == WITHOUT_ID
    assert decided(topic_id=None, chosen="topic_id") == "refused"
    # ids that were reported may be so again: no result may lose what its id had
    assert decided(BY_ID, topic_id=None) == "wait"


def test_offsets_are_doubted_only_until_something_of_the_new_topic_was_scored() -> None:
    assert was_created_again(BY_ID, inputs(EARLIER_BY_ID, None))
    assert was_created_again(BY_ID, inputs(NAMELESS_BY_ID))
    assert not was_created_again(BY_ID, inputs(EARLIER_BY_ID, BY_ID))
    assert not was_created_again(BY_ID, inputs(RENAMED_BY_ID))
    assert not was_created_again(BY_ID, inputs(UPGRADED, None))
    assert not was_created_again(BY_ID, ())
    assert not was_created_again(WITHOUT_ID, inputs(EARLIER_BY_NAME))


def test_an_id_is_spelled_as_kafkas_own_tools_spell_it() -> None:
    assert spelled_id("00010203-0405-0607-0809-0a0b0c0dfeff") == "AAECAwQFBgcICQoLDA3-_w"
