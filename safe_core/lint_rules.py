"""What is wrong with test cases before any output is scored.

Scores are decided elsewhere, by the literal rule alone; nothing here moves one.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Literal, NamedTuple, get_args

from safe_core.accepted_wordings import KEY, is_wording
from safe_core.case_keys import unread_keys, within
from safe_core.diagnosis.alignment import KEPT, align, term_of
from safe_core.diagnosis.reading import read, whole_words
from safe_core.expectations import PLACES, term_problem
from safe_core.matching_rule import normalise, which_occur
from safe_core.narrative_digests import InvalidDigest, narrative_of, stated_digest
from safe_core.policy import CRITERIA, UNKNOWN_ARCHETYPE, Criterion
from safe_core.scripts import is_letter_of_spaced_word
from safe_core.testcases import CONTRACT_CASE, BadTestCase, TestCase, parse_batch

# --- findings ---------------------------------------------------------------------------------------------------------

Severity = Literal["error", "warning", "info"]
_Error = Literal["unreadable_file", "duplicate_key", "invalid_case", "blank_term", "test_id_twice_differently"]
_Warning = Literal[
    "test_id_differs_elsewhere",
    "misspelt_key",
    "misplaced_key",
    "not_in_narrative",
    "forbidden_and_required",
    "hits_inside_word",
    "duplicate_term",
    "nested_term",
    "test_id_twice",
    "no_concern",
    "placeholder_archetype",
    "checks_nothing",
    "malformed_digest",
    "malformed_wordings",
    "wording_of_no_term",
    "wording_lacks_fact",
]
_Info = Literal[
    "forbidden_inside_theme",
    "forbidden_inside_required",
    "may_hit_inside_word",
    "unknown_key",
    "never_found",
    "never_used",
]
Code = Literal[_Error, _Warning, _Info]

SEVERITIES: Final[Mapping[Code, Severity]] = {
    **dict.fromkeys(get_args(_Error), "error"),
    **dict.fromkeys(get_args(_Warning), "warning"),
    **dict.fromkeys(get_args(_Info), "info"),
}
"""Every code, the most important first; what is `info` asks nobody to act."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to look at in one batch file; `sentence` and `path` quote the file.

    `position` is that of the test case in `test_cases`, None for what concerns the whole file; `path` leads on from
    there; `term` is the term in question, as written.
    """

    code: Code
    sentence: str
    position: int | None = None
    test_id: str | None = None
    path: str = ""
    term: str | None = None

    @property
    def severity(self) -> Severity:
        return SEVERITIES[self.code]

    @property
    def place(self) -> str:
        """Where it stands, as "test_cases[3] (ID).expectations.event_summary"; "" for the whole file."""
        if self.position is None:
            return self.path
        case = f"test_cases[{self.position}]" + (f" ({self.test_id})" if self.test_id is not None else "")
        return f"{case}.{self.path}" if self.path else case


class WrittenCase(NamedTuple):
    """A test case as it was read, and as it stands in its file."""

    position: int
    read: TestCase | BadTestCase
    written: object

    def finding(self, code: Code, sentence: str, path: str = "", term: str | None = None) -> Finding:
        """Make a finding of this case."""
        return Finding(code, sentence, self.position, self.read.test_id, path, term)


class ListedTerm(NamedTuple):
    """A term that can be looked for: its place within the case, as written, and as it is looked for."""

    path: str
    term: str
    needle: str


def written_cases(document: object) -> list[WrittenCase]:
    """Read the test cases of a batch file; raises InvalidBatch."""
    batch = parse_batch(document)
    written: list[object] = document["test_cases"]  # type: ignore[index]  # what it parsed as
    return [WrittenCase(position, *pair) for position, pair in enumerate(zip(batch.cases, written, strict=True))]


def findings(cases: Iterable[WrittenCase]) -> Iterator[Finding]:
    """Find what is wrong in test cases of one batch file, case by case."""
    first: dict[str, WrittenCase] = {}
    contract, others = _of_either_kind(cases)
    if contract:
        count = f"{len(contract)} of {len(contract) + len(others)} test cases cannot be scored"
        yield contract[0].finding("invalid_case", f"{count}: {CONTRACT_CASE}")
    for case in others:
        for check in _CASE_CHECKS:
            yield from check(case)
        lists = {criterion: listed_terms(case, criterion) for criterion in CRITERIA}
        for check_terms in _TERM_CHECKS:
            for code, term, what in check_terms(case, lists):
                yield case.finding(code, f'"{term.term}" {what}', term.path, term.term)
        test_id = case.read.test_id
        if test_id is not None and first.setdefault(test_id, case) is not case:
            yield _twice(first[test_id], case)


def _of_either_kind(cases: Iterable[WrittenCase]) -> tuple[list[WrittenCase], list[WrittenCase]]:
    """Give the contract cases, whose keys are other ones, and the others."""
    kinds: tuple[list[WrittenCase], list[WrittenCase]] = [], []
    for case in cases:
        is_contract = isinstance(case.read, BadTestCase) and case.read.problem == CONTRACT_CASE
        kinds[0 if is_contract else 1].append(case)
    return kinds


def listed_terms(case: WrittenCase, criterion: Criterion) -> list[ListedTerm]:
    """List the terms of one criterion that can be looked for; what is blank or no text is left out."""
    return [term for term in _written_terms(case, criterion) if term.needle]


def _written_terms(case: WrittenCase, criterion: Criterion) -> Iterator[ListedTerm]:
    keys = ("expectations", *PLACES[criterion])
    terms = within(case.written, *keys)
    for at, term in enumerate(terms if isinstance(terms, list) else ()):
        if isinstance(term, str):
            yield ListedTerm(f"{'.'.join(keys)}[{at}]", term, normalise(term))


# --- findings of a case -----------------------------------------------------------------------------------------------


def _keys(case: WrittenCase) -> Iterator[Finding]:
    return (case.finding(each.code, each.sentence, each.path) for each in unread_keys(case.written))


def _problems(case: WrittenCase) -> Iterator[Finding]:
    """Name each blank term, and what else makes the case unusable, as far as reading it got."""
    terms = (term for criterion in CRITERIA for term in _written_terms(case, criterion))
    blank = [term for term in terms if not term.needle]
    named = {f"{term.path.removeprefix('expectations.')} is blank" for term in blank}
    for term in blank:
        yield case.finding("blank_term", "a blank term, which would match everything", term.path, term.term)
    if isinstance(case.read, BadTestCase) and case.read.problem not in named:
        yield case.finding("invalid_case", f"cannot be scored: {case.read.problem}")


def _checks_nothing(case: WrittenCase) -> Iterator[Finding]:
    if isinstance(case.read, TestCase) and not any(case.read.expectations.lists):
        yield case.finding("checks_nothing", "all three lists are empty: every output passes", "expectations")


_DIGEST: Final = "patient_payload_digest"


def _digest(case: WrittenCase) -> Iterator[Finding]:
    try:
        stated_digest(within(case.written, _DIGEST))
    except InvalidDigest as error:
        yield case.finding(
            "malformed_digest", f"{error}: nobody can tell whether an output is of this patient", _DIGEST
        )


def _concern(case: WrittenCase) -> Iterator[Finding]:
    if isinstance(case.written, Mapping) and case.written.get("concern_id") is None:
        yield case.finding(
            "no_concern", "has no concern_id: an event for it becomes a dead letter unless the event has one"
        )


def _archetype(case: WrittenCase) -> Iterator[Finding]:
    written = within(case.written, "archetype")
    if isinstance(written, str) and isinstance(case.read, TestCase) and case.read.archetype is None:
        what = f'"{written}" is a placeholder' if written.strip() else "is blank"
        sentence = (
            f"{what}, and the batch plan names no archetype either: the case counts in the group {UNKNOWN_ARCHETYPE}"
        )
        yield case.finding("placeholder_archetype", sentence, "archetype")


def _wordings(case: WrittenCase) -> Iterator[Finding]:
    """Find accepted wordings that nothing reads, and those that say less than their terms."""
    written = within(case.written, KEY)
    if not isinstance(written, Mapping):
        if written is not None:
            yield case.finding("malformed_wordings", "is not an object of terms, so nothing in it is accepted", KEY)
        return
    required = {listed.needle for criterion in ("CR", "AC") for listed in listed_terms(case, criterion)}
    for term, texts in written.items():
        if normalise(term) not in required:
            yield case.finding("wording_of_no_term", f'"{term}" is not a required term of the case', KEY, term)
            continue
        if problem := _problem_of_wordings(texts):
            yield case.finding("malformed_wordings", f'"{term}" {problem}', KEY, term)
        for text in texts if isinstance(texts, list) else ():
            if is_wording(text) and (lacking := facts_lacking(term, text)):
                told = ", ".join(f'"{each}"' for each in lacking)
                sentence = f'"{text}" is accepted for "{term}", but does not say {told}'
                yield case.finding("wording_lacks_fact", sentence, KEY, text)


def _problem_of_wordings(texts: object) -> str | None:
    """Say which of the wordings of a term are none, None if all can be accepted."""
    if not isinstance(texts, list):
        return 'has no list of texts, so nothing is accepted for it: write ["...", "..."]'
    told = [f"[{number}] {problem}" for number, text in enumerate(texts) if (problem := term_problem(text))]
    if not told:
        return None
    more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    return f"has wordings that are not accepted: {', '.join(told[:_NAMED])}{more}"


_NAMED: Final = 5


def facts_lacking(term: str, wording: str) -> list[str]:
    """Give the words of a term that another wording of it does not say, or says otherwise."""
    edits = align(term_of(term), read(wording).clauses).edits
    return [*whole_words(term, [edit.fact for edit in edits if edit.kind not in _SAID and edit.fact.tells])]


_SAID: Final = KEPT | {"perhaps"}


def _twice(first: WrittenCase, second: WrittenCase) -> Finding:
    one, two = first.read, second.read
    earlier = f"test_cases[{first.position}]"
    if isinstance(one, TestCase) and isinstance(two, TestCase) and one.expectations != two.expectations:
        sentence = f"{earlier} has the same test_id and different expectations: neither can be scored"
        return second.finding("test_id_twice_differently", sentence, "test_id")
    return second.finding("test_id_twice", f"{earlier} has the same test_id: the first counts", "test_id")


_CASE_CHECKS: Final = (_problems, _keys, _checks_nothing, _digest, _concern, _archetype, _wordings)


# --- findings of terms ------------------------------------------------------------------------------------------------

_Lists = Mapping[Criterion, Sequence[ListedTerm]]
_TermFindings = Iterator[tuple[Code, ListedTerm, str]]  # the sentence lacks its first word, the term in quotes


def _absent(case: WrittenCase, lists: _Lists) -> _TermFindings:
    narrative = narrative_of(case.written)
    if narrative is None:
        return
    required = (*lists["CR"], *lists["AC"])
    stands = which_occur(normalise(narrative), [listed.needle for listed in required])
    for listed, found in zip(required, stands, strict=True):
        if not found:
            yield "not_in_narrative", listed, "is not in the narrative"


def _repeated(_: WrittenCase, lists: _Lists) -> _TermFindings:
    for terms in lists.values():
        first: dict[str, ListedTerm] = {}
        for listed in terms:
            if first.setdefault(listed.needle, listed) is not listed:
                yield (
                    "duplicate_term",
                    listed,
                    f"is listed twice, also as {_last(first[listed.needle].path)}, and so counts twice",
                )


def _nested(_: WrittenCase, lists: _Lists) -> _TermFindings:
    for criterion, terms in lists.items():
        effect = (
            "one use of the longer term counts twice"
            if criterion == "AH"
            else "an output that has the longer one has both"
        )
        for listed, longer in _inside(terms, terms):
            yield "nested_term", listed, f'is inside "{longer.term}", {_last(longer.path)}: {effect}'


def _contradictory(_: WrittenCase, lists: _Lists) -> _TermFindings:
    """Find forbidden terms that are required too, which matters where a question quotes what was to be found."""
    required = {listed.needle: listed for listed in (*lists["AC"], *lists["CR"])}
    for listed in lists["AH"]:
        if same := required.get(listed.needle):
            yield "forbidden_and_required", listed, f"is forbidden in questions, but also required ({_last(same.path)})"
    for listed, longer in _inside(lists["AH"], list(required.values())):
        place = f'"{longer.term}" ({_last(longer.path)})'
        what = f"is forbidden, but is part of the required {place}: a question that quotes it counts as a violation"
        yield "forbidden_inside_required", listed, what


def _forbidden_themes(case: WrittenCase, lists: _Lists) -> _TermFindings:
    themes = within(case.written, "expectations", "followup_questions", "required_themes")
    for theme in themes if isinstance(themes, list) else ():
        for listed in lists["AH"] if isinstance(theme, str) else ():
            if listed.needle in normalise(theme):
                yield "forbidden_inside_theme", listed, f'is forbidden, but the required theme "{theme}" contains it'


def _short(case: WrittenCase, lists: _Lists) -> _TermFindings:
    narrative = normalise(narrative_of(case.written) or "")
    every = [listed for terms in lists.values() for listed in terms]
    words = {needle: longer_word(needle, narrative) for needle in dict.fromkeys(each.needle for each in every)}
    for listed in every:
        if word := words[listed.needle]:
            yield "hits_inside_word", listed, f'also matches inside "{word}", which is in the narrative'
        elif word := longer_word(listed.needle, _COMMON_WORDS):
            yield "may_hit_inside_word", listed, f'would also match inside words like "{word}"'


_TERM_CHECKS: Final = (_absent, _repeated, _nested, _contradictory, _forbidden_themes, _short)


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _inside(shorter: Iterable[ListedTerm], longer: Sequence[ListedTerm]) -> Iterator[tuple[ListedTerm, ListedTerm]]:
    """Pair each term with the first different one inside which it stands; a term listed twice is looked at once.

    One search through all the longer terms at once keeps this quick for lists of thousands.
    """
    holders = list({listed.needle: listed for listed in reversed(longer)}.values())[::-1]
    text = "\0".join(listed.needle for listed in holders)
    starts = list(accumulate((len(listed.needle) + 1 for listed in holders), initial=0))
    for listed in {listed.needle: listed for listed in shorter}.values():
        at = text.find(listed.needle)
        while at >= 0 and holders[place := bisect_right(starts, at) - 1].needle == listed.needle:
            at = text.find(listed.needle, starts[place + 1])
        if at >= 0:
            yield listed, holders[bisect_right(starts, at) - 1]


# --- matches inside longer words --------------------------------------------------------------------------------------

_SHORT: Final = 4
_INFLECTIONS: Final = frozenset({"s", "es", "d", "ed", "r", "er", "ing"})
_NUMBER_BEFORE: Final = re.compile(r"\d[\d.,:]*\Z")
_NUMBER_AFTER: Final = re.compile(r"[.,:]?\d+")
_LONGEST_NUMBER: Final = 16

_COMMON_WORDS: Final = """
about above abdominal able according active acute added administered admission admitted advised after again against age
airway already also although always among and anterior another any appeared appointment appropriate approximately area
around arrival arrived assessed assessment available away awaiting baseline because been before began behind being below
better between bleeding blood both breathing brought called capillary cardiac care carer careful cause caused certain
chart chest child clear clinical closed closely come comfortable compared complaint complete concern concerned condition
confirmed consent consider considered consultant contact contained continued control could course current date daughter
day decided decision decreased deformity delay delayed department described despite detail deteriorated did different
difficult direct discharge discharged discussed distal doctor documented does done down due during each early edema
either elbow elevated emergency empty episode especially evaluation evening event every evidence examination examined
explained extremity factor failed fall family father feeling felt finding finger first flexion fluid follow following
for forearm found fracture from full further gave general given good great guardian had hand has have head health heart
help here high history home hospital hour how however identified imaging immediate immediately impaired important
improved including increased indicated infection information initial initially injury inside instead intact into
intravenous involved issue just keep known laboratory large last late later least left less level life like limited
little local long lower made main major management many mark mature measure medical medication midnight might minor
minute moderate monitored month more morning most mother motor movement much must narrow near necessary need nerve
neurological never next night normal not note noted nothing notified now number nurse observation observed obtained
occurred of often old once one only open operating operation or orthopaedic other our out over oxygen pain palpable part
particular patient per perform performed perfusion period person physician place placed plan planned point positive
possible posterior postoperative prepared presented pressure previous prior problem procedure process progress promptly
provided pulse quickly radial range rate reached reason received recent record recorded recovery reduced reduction
referred regarding remained repair repeat reported required respiratory response result resulted return review right
room routine same scan scheduled second sedation seen sensation several severe should showed side sign similar since
skin slightly slow small some soon sought stable staff standard start started status still stopped strong such sudden
suggest support surgeon surgery surgical sustained swelling symptom system taken team temperature test than that the
their them then there therapy these they third this those though three throughout time tissue today together told took
total toward transfer transferred treated treatment trial under underwent unit until upon urgent usual vascular very
vital waited waiting was watch week weight well were what when where whether which while who whole will with within
without wound would wrist year yesterday
""".replace("\n", " ")


_LOOKS: Final = 1_000
"""How many places of a needle are looked at: a text may hold a short one a million times."""


def longer_word(needle: str, text: str) -> str | None:
    """Give the first longer word of a text that a needle matches inside of: the literal rule knows no word bounds.

    Only needles of up to four characters are looked at, and longer ones that begin or end with a digit, which match
    inside longer numbers. A word that merely inflects the needle is none. Only the first _LOOKS places are looked at.
    """
    can_be_inside = len(needle) <= _SHORT or needle[0].isdigit() or needle[-1].isdigit()
    at = text.find(needle) if can_be_inside else -1
    for _ in range(_LOOKS):
        if at < 0:
            return None
        word = _word_around(needle, text, at)
        if word != needle and not _inflects(word, needle):
            return word
        at = text.find(needle, at + 1)
    return None


def _inflects(word: str, needle: str) -> bool:
    ending = word.removeprefix(needle)  # where it is none, the whole word, which is no ending
    return not {ending, ending.removeprefix(needle[-1])}.isdisjoint(_INFLECTIONS)


def _word_around(needle: str, text: str, at: int) -> str:
    begin, end = at, at + len(needle)
    if needle[0].isdigit() and (number := _NUMBER_BEFORE.search(text, max(0, begin - _LONGEST_NUMBER), begin)):
        begin = number.start()
    if needle[-1].isdigit() and (number := _NUMBER_AFTER.match(text, end)):
        end = number.end()
    if len(needle) <= _SHORT:
        while is_letter_of_spaced_word(needle[0]) and begin and is_letter_of_spaced_word(text[begin - 1]):
            begin -= 1
        while is_letter_of_spaced_word(needle[-1]) and end < len(text) and is_letter_of_spaced_word(text[end]):
            end += 1
    return text[begin:end]
