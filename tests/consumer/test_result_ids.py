"""Whether the ids of results have the id of the input topic, and when a topic that was created again is refused."""

from typing import Literal

import pytest

from consumer.errors import ConfigurationError, Transient
from consumer.kafka.protocol import spelled_id
from consumer.wire.changelog import InputTopic, ProgressRow
from consumer.worker.result_ids import ResultIds, named_input_topic, was_created_again

BY_ID, BY_NAME = (InputTopic("one", is_in_result_ids=flag) for flag in (True, False))
EARLIER_BY_ID, EARLIER_BY_NAME = (InputTopic("earlier", is_in_result_ids=flag) for flag in (True, False))


def decided(
    *scored: InputTopic | None, topic_id: str | None = "one", chosen: ResultIds | None = None
) -> InputTopic | Literal["refused", "wait"] | None:
    rows = [ProgressRow("g", 2, 4, 9, input=each) for each in scored]
    try:
        return named_input_topic("outputs", topic_id, chosen, rows)
    except ConfigurationError:
        return "refused"
    except Transient:
        return "wait"


def test_a_new_installation_has_the_topics_id_in_its_ids() -> None:
    assert decided() == BY_ID


def test_one_that_has_rows_keeps_the_form_that_it_has() -> None:
    assert decided(None, None) == BY_NAME  # an older version wrote them
    assert decided(None, BY_NAME) == BY_NAME
    assert decided(None, BY_ID) == BY_ID  # one partition has had no record since
    assert decided(BY_NAME, BY_ID) == BY_ID


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
        named_input_topic("outputs", "one", None, [ProgressRow("g", 2, 4, 9, input=EARLIER_BY_NAME)])
    words = ("outputs was deleted and created again", "id earlier", "id one", "Starting over", "SAFE_V0_RESULT_IDS")
    for word in words:
        assert word in str(raised.value)


def test_brokers_that_report_no_ids_leave_the_name_alone() -> None:
    assert decided(topic_id=None) is None
    assert decided(None, EARLIER_BY_NAME, topic_id=None) is None
    assert decided(topic_id=None, chosen="topic_name") is None
    assert decided(topic_id=None, chosen="topic_id") == "refused"
    # ids that were reported may be so again: no result may lose what its id had
    assert decided(BY_ID, topic_id=None) == "wait"


def test_offsets_are_doubted_only_until_something_of_the_new_topic_was_scored() -> None:
    rows = {each: ProgressRow("g", 2, 4, 9, input=each) for each in (None, BY_ID, EARLIER_BY_ID)}
    assert was_created_again(BY_ID, [rows[EARLIER_BY_ID], rows[None]])
    assert not was_created_again(BY_ID, [rows[EARLIER_BY_ID], rows[BY_ID]])
    assert not was_created_again(BY_ID, [rows[None]])
    assert not was_created_again(BY_ID, [])


def test_an_id_is_spelled_as_kafkas_own_tools_spell_it() -> None:
    assert spelled_id("00010203-0405-0607-0809-0a0b0c0dfeff") == "AAECAwQFBgcICQoLDA3-_w"
