"""Forbidden terms in another form: what is told, and what is not."""

import pytest

from safe_core.near_violations import _MOST_LETTERS, _letters, near_violations

EVASIONS = [
    # term, question, what of it is told
    ("standard of care", "Was the standard\nof care met?", "standard\nof care"),  # a line break
    ("standard of care", "Was the standard \t of  care met?", "standard \t of  care"),  # white space
    ("standard of care", "Was the standard-of-care met?", "standard-of-care"),  # hyphens
    ("follow-up failure", "Was there a follow\u2011up failure?", "follow\u2011up failure"),  # such a hyphen
    ("negligence", "Was this negli\u200bgence?", "negli\u200bgence"),  # a zero-width space
    ("negligence", "Was this negli\u00adgence?", "negli\u00adgence"),  # a soft hyphen
    ("physician's error", "Was it the physician\u2019s error?", "physician\u2019s error"),  # another apostrophe
    ("cefal\u00e9e", "Cefale\u0301e or headache?", "Cefale\u0301e"),  # an accent of its own
    # further ones
    ("standard of care", "Was the standard\u00a0of\u202fcare met?", "standard\u00a0of\u202fcare"),  # no-break spaces
    ("negligence", "Was this \uff4e\uff45\uff47\uff4c\uff49\uff47\uff45\uff4e\uff43\uff45?",
     "\uff4e\uff45\uff47\uff4c\uff49\uff47\uff45\uff4e\uff43\uff45"),  # full-width letters
    ("misconfiguration", "Was a miscon\ufb01guration found?", "miscon\ufb01guration"),  # a ligature
    ("negligence", "Was this \U0001d427egligence?", "\U0001d427egligence"),  # a mathematical letter
    ("breach", "A bre\u2060ach of duty?", "bre\u2060ach"),  # a word joiner
    ("breach", "\u202abre\u200each\u202c of duty?", "bre\u200each"),  # marks of direction
    ("delay-related harm", "Any delay \u2013 related harm?", "delay \u2013 related harm"),  # a dash between spaces
    ("at fault", "Was anyone at\ufe0f fault?", "at\ufe0f fault"),  # a variation selector
    ("Stra\u00dfe", "Which STRASSE\u200b?", "STRASSE"),  # both cases of a letter that is two
    # contractions, and what they stand for
    ("should have", "Who should\u2019ve called?", "should\u2019ve"),
    ("should've", "Who should have called?", "should have"),
    ("did not", "What didn't they do?", "didn't"),
    ("didn't do", "What did not do it? Did nobody?", "did not do"),
    ("should not have", "Who shouldn't've gone?", "shouldn't've"),
    ("should not have", "Who shouldn't have gone?", "shouldn't have"),
    ("should not have", "Who should not've gone?", "should not've"),
    ("cannot explain", "What can't explain it?", "can't explain"),
    ("can't explain", "What cannot explain it?", "cannot explain"),
    ("will not do", "Who won't do it?", "won't do"),
    # emphasis of Markdown
    ("medication error", "Was it a medication **error**?", "medication **error"),
    ("medication error", "Was it a **medication** *error*?", "medication** *error"),
    ("medication error", "Was it a medication _**error**_?", "medication _**error"),
    ("medication error", "Was it a __medication__\nerror?", "medication__\nerror"),
    ("negligence", "Was it negli**gence**?", "negli**gence"),
    ("at fault", "* Who was at *fault*?", "at *fault"),
]  # fmt: skip


@pytest.mark.parametrize(("term", "question", "told"), EVASIONS)
def test_another_spelling_is_told_with_its_place(term: str, question: str, told: str) -> None:
    (near,) = near_violations(("policy", term), (), ["Anything else?", question])
    assert (near.term, near.kind, near.element) == (term, "spelling", 1)
    assert question[near.start : near.end] == told


@pytest.mark.parametrize(
    ("term", "question", "told"),
    [
        ("fever", "Was there any pyrexia at night?", "pyrexia"),
        ("shortness of breath", "Was SOB reported?", "SOB"),
        ("missed nosebleed", "Who missed\nepistaxis?", "missed\nepistaxis"),
        ("epistaxis overlooked", "Was a nose-bleed overlooked?", "nose-bleed overlooked"),
    ],
)
def test_a_word_that_the_lexicon_calls_the_same_is_told(term: str, question: str, told: str) -> None:
    (near,) = near_violations((term,), (), [question])
    assert near.kind == "synonym"
    assert question[near.start : near.end] == told


@pytest.mark.parametrize(
    ("term", "question"),
    [
        ("breach", "Were the breaches closed? Unbreachable?"),  # inside a longer word
        ("we have", "Were we haven? A weave?"),
        ("should have", "Shall we? Should he have?"),
        ("standard of care", "Was substandard-of-care given? Standard of careful work?"),
        ("bypass", "Did anyone by-pass the nurse?"),  # nothing is deleted
        ("stand by", "Did anyone standby?"),
        ("physicians error", "The physician's error?"),
        ("malpractice claim", "Any malpractice? Claim?"),  # other punctuation parts
        ("error", "Was an erro\u0301r made?"),  # another letter
        ("fever", "Was he afebrile?"),  # the opposite
        ("negligence", "Was anybody negligent?"),  # another form of the word
        ("-", "Was a follow-up planned?"),  # nothing is left of it
        ("**", "Was **this** planned?"),
        ("negligence", "Is _negli_gence a word?"),  # no emphasis
        ("at fault", "Was at_fault set?"),
        ("medication error", "Any\nmedication\n* error\n* fall"),  # the bullet of a list
        ("medication error", "Was it a medication/error?"),  # one or the other
        ("sub-standard", "Was it substandard?"),  # and the other way round:
        ("substandard", "Was it sub-standard, or sub standard?"),
    ],
)
def test_what_is_another_text_is_not_told(term: str, question: str) -> None:
    assert near_violations((term,), (), [question]) == ()


@pytest.mark.parametrize(
    ("term", "question"),
    [("sui\u00adcide", "Any suicide?"), ("stra\u00dfe", "Which STRASSE?"), ("blame-", "Whom to blame?")],
)
def test_a_term_of_one_word_that_is_not_plain_is_found_in_a_plain_question(term: str, question: str) -> None:
    (near,) = near_violations((term,), (), [question])
    assert near.kind == "spelling"


def test_a_term_does_not_go_from_one_question_to_the_next() -> None:
    assert near_violations(("at fault",), (), ["Who was at", "fault-finding?"]) == ()


def test_a_used_term_is_a_violation_and_nothing_more() -> None:
    assert near_violations(("at fault",), ("at fault",), ["Who was at fault? Who was at\nfault?"]) == ()


def test_a_term_is_told_once_and_in_the_order_of_the_list() -> None:
    told = near_violations(("b-c", "a-b", "b-c"), (), ["a b c a b c"])
    assert [near.term for near in told] == ["b-c", "a-b"]


def test_any_code_point_can_be_asked() -> None:
    every = "".join(map(chr, range(0x3000))) + "\ud800\U000e0041\U0001f600"
    assert near_violations(("at fault",), (), [f"{every} at\nfault"])


def test_a_long_term_is_looked_for_in_its_own_words_alone() -> None:
    term = "heart attack " * 3_000 + "at fault"
    assert near_violations((term,), (), [term.replace("heart attack", "myocardial infarction", 1)]) == ()
    (near,) = near_violations((term,), (), [term.replace("at fault", "at-fault")])
    assert near.kind == "spelling"


def test_letters_of_many_scripts_do_not_stay_in_memory() -> None:
    every = "".join(map(chr, range(0x100, 0xD800)))
    assert near_violations(("at fault",), (), [f"{every} at\nfault"])
    assert len(_letters) <= _MOST_LETTERS
