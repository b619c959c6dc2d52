"""Thresholds, weights, strictness and their layers."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safe_core import CRITERIA, DEFAULT_POLICY, InvalidPolicy, Override, Policy, Rules, Threshold, Thresholds, Weights

NAN, INFINITY = float("nan"), float("inf")
DEFAULT_DOCUMENT = {
    "thresholds": {
        "CR": {"pass": 0.8, "review": 0.5},
        "AH": {"pass": 1.0, "review": 0.5},
        "AC": {"pass": 0.8, "review": 0.5},
    },
    "weights": {"CR": 1.0, "AH": 1.0, "AC": 1.0},
    "strictAH": False,
    "overrides": {"metric_id": {}, "archetype": {}},
    "errorTexts": ["ENGINE_ERROR"],
    "placeholderTexts": ["N/A - Signal Task", "Summary skipped in lean mode"],
}


def test_the_defaults_are_those_of_the_specification() -> None:
    assert DEFAULT_POLICY.configuration() == DEFAULT_DOCUMENT
    assert Policy.from_document({}) == DEFAULT_POLICY
    assert re.fullmatch("sha256:[0-9a-f]{64}", DEFAULT_POLICY.fingerprint)


def cr(**bounds: Any) -> dict[str, Any]:
    return {"thresholds": {"CR": {"pass" if key == "reach" else key: value for key, value in bounds.items()}}}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (cr(review=0.9), "thresholds.CR: review 0.9 is above pass 0.8"),  # against the default of the other bound
        (cr(reach=1.1), "thresholds.CR: pass 1.1 is above 1"),
        (cr(review=-0.1), "thresholds.CR: review -0.1 is below 0"),
        (cr(review=NAN), "thresholds.CR.review is not finite"),  # no comparison would refuse it
        (cr(reach=INFINITY), "thresholds.CR.pass is not finite"),
        (cr(reach=True), "thresholds.CR.pass is not a number"),  # a claim is not a number
        (cr(reach="0.8"), "thresholds.CR.pass is not a number"),  # a text neither
        (cr(reach=None), "thresholds.CR.pass is not a number"),
        (cr(pas=0.8), 'thresholds.CR: unknown key "pas"; did you mean "pass"?'),
        ({"thresholds": {"AX": {}}}, 'thresholds: unknown key "AX"; did you mean "AH"?'),
        ({"thresholds": []}, "thresholds: not an object"),
        ({"weigths": {}}, 'unknown key "weigths"; did you mean "weights"?'),
        ({"zzz": 1}, 'unknown key "zzz"; known are thresholds, weights, strictAH, overrides, errorTexts, placeholder'),
        ({"weights": {"CR": -1}}, "weights: CR -1.0 is below 0"),
        ({"weights": {"CR": NAN}}, "weights.CR is not finite"),
        ({"weights": {"CR": 10**400}}, "weights.CR is not finite"),  # an integer too large for binary64
        ({"weights": {"CR": False}}, "weights.CR is not a number"),
        ({"weights": {"CR": 0, "AH": 0, "AC": 0}}, "weights: the sum of the weights is 0"),
        ({"weights": {"CR": 1.5e308, "AH": 1.5e308}}, "weights: the sum of the weights is not finite"),  # inf / inf
        ({"strictAH": 1}, "strictAH is neither true nor false"),
        ({"strictAH": "yes"}, "strictAH is neither true nor false"),
        ({"overrides": {"concern": {}}}, 'overrides: unknown key "concern"; known are metric_id, archetype'),
        ({"overrides": {"archetype": []}}, "overrides.archetype: not an object"),
        ({"overrides": {"archetype": {"X": 1}}}, "overrides.archetype.X: not an object"),
        ({"overrides": {"archetype": {"X": {"overrides": {}}}}}, "overrides.archetype.X: unknown key"),
        ({"overrides": {"archetype": {"": {}}}}, "overrides.archetype: a name is empty"),  # no case could have it
        (
            {"overrides": {"archetype": {"X": cr(review=0.9)}}},
            "overrides.archetype.X: thresholds.CR: review 0.9 is above",
        ),
        (
            {"overrides": {"metric_id": {"M": {"weights": {"CR": -2}}}}},
            "overrides.metric_id.M: weights: CR -2.0 is below",
        ),
        (
            # each is fine alone, only together they are not
            {"overrides": {"metric_id": {"M": cr(review=0.7)}, "archetype": {"X": cr(reach=0.6)}}},
            "overrides.metric_id.M with overrides.archetype.X: thresholds.CR: review 0.7 is above pass 0.6",
        ),
        (
            {
                "overrides": {
                    "metric_id": {"M": {"weights": {"CR": 0, "AH": 0}}},
                    "archetype": {"X": {"weights": {"AC": 0}}},
                }
            },
            "overrides.metric_id.M with overrides.archetype.X: weights: the sum of the weights is 0",
        ),
    ],
)
def test_a_bad_configuration_is_refused_with_the_layer_and_the_values(document: Any, message: str) -> None:
    with pytest.raises(InvalidPolicy, match=re.escape(message)):
        Policy.from_document(document)


@pytest.mark.parametrize(
    "document",
    [
        cr(review=0, reach=0),  # everything passes
        cr(review=1, reach=1),  # nothing is left to review
        {"weights": {"CR": 0, "AH": 0}},  # one weight is enough
        {"thresholds": None, "weights": None, "strictAH": None, "overrides": None},  # null: as if absent
    ],
)
def test_the_borders_of_what_is_allowed_are_allowed(document: Any) -> None:
    Policy.from_document(document)


@pytest.mark.parametrize("value", [True, "1", None, NAN])
def test_what_is_no_number_is_refused_also_without_a_document(value: Any) -> None:
    with pytest.raises(InvalidPolicy):
        Threshold(review=value, pass_=1.0)
    with pytest.raises(InvalidPolicy):
        Weights(CR=value)
    with pytest.raises(InvalidPolicy):
        Override({"weights.CR": value})
    with pytest.raises(InvalidPolicy):
        Rules(strict_ah=1)  # type: ignore[arg-type]  # the point of the test


LAYERED = Policy.from_document(
    {
        "weights": {"CR": 2},
        "overrides": {
            "metric_id": {"M": {"weights": {"CR": 3, "AH": 3}, "strictAH": True, **cr(review=0.4)}},
            "archetype": {
                "X": {"weights": {"AH": 4}, **cr(reach=0.9)},
                "Y": {"strictAH": False},
                "Unknown": {"weights": {"AC": 9}},
            },
        },
    }
)


@pytest.mark.parametrize(
    ("metric_id", "archetype", "weights", "cr_bounds", "strict"),
    [
        ("other", "other", (2, 1, 1), (0.5, 0.8), False),  # the default layer alone
        ("M", "other", (3, 3, 1), (0.4, 0.8), True),  # metric_id over default, setting by setting
        ("other", "X", (2, 4, 1), (0.5, 0.9), False),  # archetype over default
        ("M", "X", (3, 4, 1), (0.4, 0.9), True),  # archetype over metric_id, and both over default
        ("M", "Y", (3, 3, 1), (0.4, 0.8), False),  # also back to what the default says
        ("M", None, (3, 3, 9), (0.4, 0.8), True),  # no archetype is the group "Unknown"
        ("m", "x", (2, 1, 1), (0.5, 0.8), False),  # names are compared as spelled
        ("X", "M", (2, 1, 1), (0.5, 0.8), False),  # and each in its own table
    ],
)
def test_archetype_beats_metric_id_beats_default(
    metric_id: str, archetype: str | None, weights: tuple[float, ...], cr_bounds: tuple[float, float], strict: bool
) -> None:
    assert LAYERED.rules_for(metric_id, archetype) == Rules(
        Thresholds(CR=Threshold(review=cr_bounds[0], pass_=cr_bounds[1])), Weights(*weights), strict_ah=strict
    )


def test_strictness_from_the_command_line_beats_all_layers() -> None:
    strict = Policy.from_document(LAYERED.configuration(), strict_ah_everywhere=True)
    assert all(strict.rules_for(m, a).strict_ah for m in ("other", "M") for a in ("other", "X", "Y", None))
    assert strict.configuration()["strictAH"] is True
    assert strict.rules_for("M", "X").weights == LAYERED.rules_for("M", "X").weights


def test_a_report_can_be_recomputed_from_its_own_configuration() -> None:
    again = Policy.from_document(LAYERED.configuration())
    assert (again, again.fingerprint) == (LAYERED, LAYERED.fingerprint)


@pytest.mark.parametrize(
    ("document", "same"),
    [
        ({"weights": {"CR": 1, "AH": 1, "AC": 1}}, True),  # 1 is 1.0
        ({"weights": {"CR": 1.5}}, False),
        ({"thresholds": {"AH": {"review": 0.25}}}, False),  # a threshold can change a label
        ({"strictAH": True}, False),
        ({"overrides": {"metric_id": {"M": {}}, "archetype": {"X": {"weights": {}}}}}, True),  # empty layers
        ({"overrides": {"archetype": {"X": {"strictAH": False}}}}, True),  # an override that repeats the default
        ({"overrides": {"archetype": {"X": {"strictAH": True}}}}, False),
        ({"overrides": {"metric_id": {"X": {"strictAH": True}}}}, False),
    ],
)
def test_the_fingerprint_changes_where_a_score_may_change(document: Any, same: bool) -> None:
    assert (Policy.from_document(document).fingerprint == DEFAULT_POLICY.fingerprint) == same


def test_an_archetype_that_restores_the_default_under_a_metric_id_counts_in_the_fingerprint() -> None:
    strict_m = {"metric_id": {"M": {"strictAH": True}}}
    without = Policy.from_document({"overrides": strict_m})
    restored = Policy.from_document({"overrides": {**strict_m, "archetype": {"X": {"strictAH": False}}}})
    assert without.fingerprint != restored.fingerprint


def test_the_fingerprint_does_not_depend_on_the_order_of_keys() -> None:
    one = {"overrides": {"archetype": {"A": {"strictAH": True}, "B": cr(reach=0.9)}}}
    other = {"overrides": {"archetype": {"B": cr(reach=0.9), "A": {"strictAH": True}}}}
    assert Policy.from_document(one).fingerprint == Policy.from_document(other).fingerprint


bound = st.sampled_from([0.5, 0.6, 0.7])
layer = st.fixed_dictionaries(
    {},
    optional={
        "strictAH": st.booleans(),
        "weights": st.dictionaries(st.sampled_from(CRITERIA), st.sampled_from([1, 1.0, 2.5]), max_size=2),
        "thresholds": st.dictionaries(
            st.sampled_from(CRITERIA), st.fixed_dictionaries({}, optional={"review": bound}), max_size=2
        ),
    },
)
layers = st.dictionaries(st.sampled_from(["A", "B"]), layer, max_size=2)
documents = st.builds(
    lambda base, metric, archetype: {**base, "overrides": {"metric_id": metric, "archetype": archetype}},
    layer,
    layers,
    layers,
)
NAMES = ("A", "B", "neither")


def naive_rules(document: Any, metric_id: str, archetype: str) -> Any:
    """Overlay the layers key by key, as one would by hand."""
    merged: dict[tuple[str, ...], Any] = {("strictAH",): False}
    overrides = document["overrides"]
    sources: tuple[Any, ...] = (
        DEFAULT_DOCUMENT,
        document,
        overrides["metric_id"].get(metric_id, {}),
        overrides["archetype"].get(archetype, {}),
    )
    for source in sources:
        for criterion, weight in source.get("weights", {}).items():
            merged["weights", criterion] = weight
        for criterion, bounds in source.get("thresholds", {}).items():
            merged.update({("thresholds", criterion, name): value for name, value in bounds.items()})
        if "strictAH" in source:
            merged["strictAH",] = source["strictAH"]
    return merged


def rules_as_paths(rules: Rules) -> Any:
    paths: dict[tuple[str, ...], Any] = {("strictAH",): rules.strict_ah}
    for criterion in CRITERIA:
        threshold = getattr(rules.thresholds, criterion)
        paths["thresholds", criterion, "pass"] = threshold.pass_
        paths["thresholds", criterion, "review"] = threshold.review
        paths["weights", criterion] = getattr(rules.weights, criterion)
    return paths


def all_rules(document: Any) -> Any:
    return [naive_rules(document, metric_id, archetype) for metric_id in NAMES for archetype in NAMES]


@given(documents)
def test_the_layers_are_overlaid_setting_by_setting(document: Any) -> None:
    policy = Policy.from_document(document)
    overlaid = [rules_as_paths(policy.rules_for(m, a)) for m in NAMES for a in NAMES]
    assert overlaid == all_rules(document)
    assert Policy.from_document(policy.configuration()) == policy


@given(documents, documents)
def test_two_policies_have_one_fingerprint_exactly_if_they_rule_alike_everywhere(one: Any, other: Any) -> None:
    alike = all_rules(one) == all_rules(other)
    assert (Policy.from_document(one).fingerprint == Policy.from_document(other).fingerprint) == alike
