"""Evaded forbidden terms and invented values between runs: neither may look like progress."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from consumer.cli.main import main
from consumer.offline.compare import Comparison, compare
from consumer.offline.pages.comparison_content import RENDERED, headline, summary, term_totals, terms_of
from consumer.offline.stored_report import read_report
from tests.support.desk import lay_out, score

NARRATIVE = "A 52-year-old man had chest pain at rest. Troponin was raised. He was given aspirin 300 mg."
BLAMES, EVADES, ASKS = ([f"Was this {word}?"] for word in ("negligence", "negli\u200bgence", "explained to the family"))
TOLD, INVENTS = "Chest pain at rest.", "Chest pain at rest, blood pressure 148/92, temperature 38.4 C."
Output = dict[str, Any]


def answered(questions: list[str], summary: str = TOLD) -> Output:
    return {"signals": ["chest pain"], "summary": summary, "followup_questions": questions}


def case(number: int, **changes: Any) -> dict[str, Any]:
    expectations = {
        "signal_generation": {"must_find_signals": ["chest pain"]},
        "followup_questions": {"forbidden_terms": ["negligence"]},
    }
    told = {"concern_id": "K", "patient_payload": NARRATIVE, "expectations": expectations}
    return {"test_id": f"C-{number}", **told, **changes}


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def scored(name: str, output: Callable[[int], Output], *, cases: int = 10, **changes: Any) -> None:
    """Score a run in which each case is answered by number, as NAME.json."""
    numbers = range(cases)
    lay_out([case(number, **changes) for number in numbers], {f"C-{number}": output(number) for number in numbers})
    score("-o", f"{name}.json")


def compared(base: str = "base", new: str = "new") -> Comparison:
    before, after = (read_report(Path(f"{name}.json")) for name in (base, new))
    return compare(before, after, f"{base}.json", f"{new}.json")


def test_an_evasion_that_labels_call_better_is_named_and_not_called_progress() -> None:
    scored("base", lambda _: answered(BLAMES))
    scored("new", lambda _: answered(EVADES))
    comparison = compared()
    assert len(comparison.rose) == 10
    assert headline(comparison) == "Near violations rose beyond chance (10 rose, 0 fell)"
    assert "Near violations that are new: in 10 cases." in summary(comparison)
    assert comparison.document()["change"] == "near_violations"
    assert headline(compared("new", "base")) == "Labels fell beyond chance (10 fell, 0 rose)"


def test_a_term_that_is_evaded_now_is_not_called_no_longer_used() -> None:
    scored("base", lambda _: answered(BLAMES))
    scored("new", lambda number: answered(EVADES if number else ASKS))
    comparison = compared()
    assert dict(terms_of(comparison.cases[0])) == {"AH no longer used": ("negligence",)}
    assert dict(terms_of(comparison.cases[1])) == {"AH now in another form": ("negligence",)}
    assert "AH 0 newly used, 10 no longer used (9 in another form)" in term_totals(comparison)


def test_invented_values_are_named_though_every_score_is_the_same() -> None:
    scored("base", lambda _: answered(ASKS))
    scored("new", lambda number: answered(ASKS, INVENTS if number < 9 else TOLD))
    comparison = compared()
    assert headline(comparison) == "Unsupported values rose beyond chance (9 rose, 0 fell)"
    document = comparison.document()
    values = document["unsupported"]
    assert (values["cases"], values["base"], values["new"]) == (10, 0, 18)
    assert values["changed"][0] == {
        "test_id": "C-0",
        "batch_id": "b",
        "new": ["148/92", "38.4 C"],
        "gone": [],
    }
    assert document["near_violations"] == {"cases": 10, "base": 0, "new": 0, "changed": []}
    back = compared("new", "base")
    assert headline(back) == "Unsupported values fell beyond chance (9 fell, 0 rose)"
    assert back.document()["unsupported"]["changed"][0]["gone"] == ["148/92", "38.4 C"]


def test_what_rose_no_more_than_chance_explains_leaves_the_headline_but_is_told() -> None:
    scored("base", lambda number: answered(BLAMES if number < 8 else ASKS))
    scored("new", lambda number: answered(EVADES if number > 8 else ASKS))
    comparison = compared()
    assert headline(comparison) == "Labels rose beyond chance (8 rose, 0 fell)"
    assert "Near violations that are new: in 1 case." in summary(comparison)


def test_every_page_says_by_case_what_is_new() -> None:
    scored("base", lambda _: answered(BLAMES))
    scored("new", lambda _: answered(EVADES, INVENTS))
    for format_, render in RENDERED.items():
        page = render(compared())
        for told in ("C-0", "148/92", "negligence"):
            assert told in page, format_
    console = RENDERED["console"](compared())
    assert 'Unsupported values that are new (10)\n  C-0: "148/92", "38.4 C"\n' in console
    assert "Near violations 0 10 +10" in " ".join(console.split())


def test_only_cases_of_which_both_reports_tell_are_counted() -> None:
    scored("base", lambda _: answered(ASKS), patient_payload=None)
    scored("new", lambda _: answered(ASKS, INVENTS))
    comparison = compared()
    assert comparison.document()["unsupported"] is None
    assert "unsupported" not in {test.respect for test in comparison.tests}
    report = json.loads(Path("base.json").read_text())
    for result in report["results"]:
        del result["near_violations"], result["unsupported"]
    Path("base.json").write_text(json.dumps(report))
    assert {test.respect for test in compared().tests} == {"labels", "composites", "lenient", "terms"}


def test_the_gate_on_labels_is_as_it_was() -> None:
    scored("base", lambda _: answered(BLAMES))
    scored("new", lambda _: answered(EVADES, INVENTS))
    assert main(["compare", "base.json", "new.json", "--fail-on-regression"]) == 0


def test_history_counts_them_by_run_and_says_what_is_new_by_case(capsys: pytest.CaptureFixture[str]) -> None:
    scored("a", lambda _: answered(BLAMES))
    scored("b", lambda _: answered(EVADES))
    scored("c", lambda number: answered(EVADES, INVENTS if number else TOLD), patient_payload=NARRATIVE)
    capsys.readouterr()
    history = ["history", "a.json", "b.json", "c.json", "--as-given"]
    assert main([*history, "-f", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    told = [(run["near_violations"], run["unsupported"]) for run in document["runs"]]
    assert told == [(0, 0), (10, 0), (10, 18)]
    assert document["cases"][1]["near_violations"] == [0, 1, 1]
    assert document["cases"][1]["unsupported"] == [0, 0, 2]
    for format_ in ("console", "markdown"):
        assert main([*history, "-f", format_]) == 0
        page = capsys.readouterr().out
        assert "New near violations, and in which run (10)" in page
        assert "New unsupported values, and in which run (9)" in page
        assert "148/92" in page
    assert main([*history, "-f", "html"]) == 0
    index = json.loads(capsys.readouterr().out.partition('id="index">')[2].partition("</script>")[0])
    kinds = [kind for each in index["cases"] for kind in each["kinds"]]
    assert (kinds.count("near_violations"), kinds.count("unsupported")) == (10, 9)
    main([*history])
    lines = [re.split("  +", line) for line in capsys.readouterr().out.splitlines()]
    for heading, counts in (("Near violations", ["0", "10", "10"]), ("Unsupported values", ["0", "0", "18"])):
        at = next(number for number, line in enumerate(lines) if heading in line)
        assert [line[lines[at].index(heading)] for line in lines[at + 1 : at + 4]] == counts


def test_history_says_in_how_many_cases_values_could_be_checked(capsys: pytest.CaptureFixture[str]) -> None:
    lay_out([case(0), case(1, patient_payload=None)], {f"C-{number}": answered(ASKS, INVENTS) for number in (0, 1)})
    score("-o", "a.json")
    capsys.readouterr()
    main(["history", "a.json"])
    assert "2 (1 of 2 cases checked)" in capsys.readouterr().out


def test_triage_says_what_no_proposal_speaks_of(capsys: pytest.CaptureFixture[str]) -> None:
    lay_out([case(number) for number in (0, 1)], {f"C-{number}": answered(EVADES, INVENTS) for number in (0, 1)})
    triage = ["triage", "-i", "run.json", "-t", "cases"]
    assert main(triage) == 0
    said = "These outputs have 2 near violations and 4 unsupported values, of which no proposal speaks"
    assert said in capsys.readouterr().out
    lay_out([case(0)], {"C-0": answered(ASKS)})
    assert main(triage) == 0
    assert "What an output says besides the terms of its test case is not judged." in capsys.readouterr().out
