"""The specification's numbers once more, written apart from the product: slow and plain, with fractions and sorting."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Lists = tuple[Sequence[str], Sequence[str], Sequence[str]]


@dataclass(frozen=True)
class Settings:
    """Bounds as (review, pass) and weights, each for CR, AH, AC."""

    bounds: tuple[tuple[float, float], ...] = ((0.5, 0.8), (0.5, 1.0), (0.5, 0.8))
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    strict: bool = False


def oracle_score(lists: Lists, answer: Lists, settings: Settings) -> dict[str, Any]:
    """Score one case; `lists` are the terms for CR, AH, AC, `answer` is (signals, [summary], questions)."""
    signals, summary, questions = answer
    texts = (" ".join(signals) + " " + summary[0], " ".join(questions), summary[0])
    hits = [
        [term.lower().strip() in text.lower().strip() for term in terms]
        for terms, text in zip(lists, texts, strict=True)
    ]
    counts = [(sum(found), len(found)) for found in hits]
    cr = counts[0][0] / counts[0][1] if counts[0][1] else 1.0
    ac = counts[2][0] / counts[2][1] if counts[2][1] else 1.0
    ah = 1.0 - counts[1][0] / counts[1][1] if counts[1][1] else 1.0
    if settings.strict and counts[1][0]:
        ah = 0.0
    w_cr, w_ah, w_ac = settings.weights
    trio = (cr, ah, ac)
    label = "Pass"
    if any(value < upper for value, (_, upper) in zip(trio, settings.bounds, strict=True)):
        label = "Review"
    if any(value < lower for value, (lower, _) in zip(trio, settings.bounds, strict=True)):
        label = "Fail"
    yes, no = True, False
    return {
        "scores": (*trio, (w_cr * cr + w_ah * ah + w_ac * ac) / (w_cr + w_ah + w_ac)),
        "details": (
            _picked(lists[0], hits[0], yes),
            _picked(lists[0], hits[0], no),
            _picked(lists[1], hits[1], yes),
            _picked(lists[2], hits[2], yes),
            _picked(lists[2], hits[2], no),
        ),
        "terms": tuple(len(terms) for terms in lists),
        "passed": tuple(value >= upper for value, (_, upper) in zip(trio, settings.bounds, strict=True)),
        "vacuous": (not lists[0], not lists[1] or not "".join(questions), not lists[2]),
        "empty_output": not "".join([*signals, *summary, *questions]),
        "label": label,
    }


def _picked(terms: Sequence[str], hits: Sequence[bool], wanted: bool) -> tuple[str, ...]:
    return tuple(term for term, hit in zip(terms, hits, strict=True) if hit == wanted)


@dataclass(frozen=True)
class Arrival:
    """One scored case as it came; `case` is what oracle_score gave."""

    test_id: str
    version: tuple[bool, int, int, int]
    archetype: str | None
    run_id: str | None
    fingerprint: str
    expected: bool
    case: dict[str, Any]
    input_matches: bool | None

    @property
    def marks(self) -> tuple[float, float, int, int] | None:
        """Lenient recall and coverage, of two arrivals in three."""
        if self.version[-1] % 3 == 0:
            return None
        cr, _, ac, _ = self.case["scores"]
        return (max(cr, 1 / 3), ac, int(999 * cr), 7)


def standing(arrivals: Iterable[Arrival | str]) -> dict[str, Arrival]:
    """Give the arrival that stands for each test_id; a bare test_id among them removes what stood."""
    latest: dict[str, Arrival] = {}
    for arrival in arrivals:
        if isinstance(arrival, str):
            latest.pop(arrival, None)
        elif arrival.test_id not in latest or arrival.version >= latest[arrival.test_id].version:
            latest[arrival.test_id] = arrival
    return latest


def oracle_aggregate(rows: dict[str, Arrival]) -> dict[str, Any]:
    """Give every aggregate of a report over the rows that stand."""
    cases = [row.case for row in rows.values()]
    labels = [case["label"] for case in cases]
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows.values():
        groups.setdefault(row.archetype or "Unknown", []).append(row.case)
    passing = _rate(label == "Pass" for label in labels)
    return {
        "summary": {
            "total_cases": len(cases),
            "pass": labels.count("Pass"),
            "review": labels.count("Review"),
            "fail": labels.count("Fail"),
            "overall_pass_rate": passing,
        },
        "mean_scores": {
            name: _mean(c["scores"][i] for c in cases) for i, name in enumerate(("CR", "AH", "AC", "composite"))
        },
        "pass_rates": {name: _rate(c["passed"][i] for c in cases) for i, name in enumerate(("CR", "AH", "AC"))}
        | {"overall": passing},
        "label_distribution": {label: labels.count(label) for label in ("Pass", "Review", "Fail")},
        "by_archetype": {
            name: {
                "count": len(group),
                "mean_CR": _mean(c["scores"][0] for c in group),
                "mean_AH": _mean(c["scores"][1] for c in group),
                "mean_AC": _mean(c["scores"][2] for c in group),
                "pass_rate": _rate(c["label"] == "Pass" for c in group),
            }
            for name, group in sorted(groups.items())
        },
        "worst": [t for _, t in sorted((row.case["scores"][3], t) for t, row in rows.items())][:5],
        "common_CR_misses": _common((c["details"][1] for c in cases), "signal", "miss_count"),
        "common_AH_violations": _common((c["details"][2] for c in cases), "term", "count"),
        "common_AC_misses": _common((c["details"][4] for c in cases), "phrase", "miss_count"),
        "beside": _beside([row.marks for row in rows.values() if row.marks is not None]),
        "vacuous": {name: sum(c["vacuous"][i] for c in cases) for i, name in enumerate(("CR", "AH", "AC"))}
        | {"all": sum(all(c["vacuous"]) for c in cases)},
        "empty_outputs": sum(c["empty_output"] for c in cases),
        "input_mismatches": sum(row.input_matches is False for row in rows.values()),
        "failed_generations": sum(not row.version[0] for row in rows.values()),
        "answered": _answered([row.case for row in rows.values() if row.version[0]]),
        "expected_present": sum(row.expected for row in rows.values()),
        "runs": dict(sorted(Counter(row.run_id or "" for row in rows.values()).items())),
        "fingerprints": dict(sorted(Counter(row.fingerprint for row in rows.values()).items())),
    }


def _beside(marks: Sequence[tuple[float, float, int, int]]) -> dict[str, Any]:
    """Give the means of lenient recall and coverage over the cases that have them."""
    if not marks:
        return {}
    lenient_cr, lenient_ac, coverage_cr, coverage_ac = zip(*marks, strict=True)
    return {
        "mean_lenient": {"CR": _mean(lenient_cr), "AC": _mean(lenient_ac)},
        "mean_coverage": {
            "CR": sum(coverage_cr) / (1000 * len(marks)),
            "AC": sum(coverage_ac) / (1000 * len(marks)),
        },
        "lenient_cases": len(marks),
    }


def _answered(cases: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Give what the gauges tell of the cases that a model answered."""
    names = ("CR", "AH", "AC", "composite")
    return {
        "cases": len(cases),
        "pass_ratio": _rate(case["label"] == "Pass" for case in cases),
        "mean_scores": {name: _mean(case["scores"][i] for case in cases) for i, name in enumerate(names)},
    }


def _mean(values: Iterable[float]) -> float:
    exact = [Fraction(value) for value in values]
    return float(sum(exact, Fraction(0)) / len(exact)) if exact else 0.0


def _rate(claims: Iterable[bool]) -> float:
    listed = list(claims)
    return listed.count(True) / len(listed) if listed else 0.0


def _common(lists: Iterable[Sequence[str]], text_key: str, count_key: str) -> list[dict[str, Any]]:
    counted = Counter(term for terms in lists for term in terms)
    ranked = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return [{text_key: term, count_key: count} for term, count in ranked[:5]]
