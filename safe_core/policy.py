"""Thresholds, weights and strictness, for all cases and by metric_id and archetype (contract.md, "Configuration").

A configuration is a set of ten named settings ("thresholds.CR.pass", "weights.AH", "strictAH", …). The default layer
has a value for each; an override has values for some. For one case, archetype beats metric_id beats default, setting by
setting. What an engine writes in place of a model's words is configured too, once for all cases.
"""

import difflib
import hashlib
import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import Any, Literal, Self, get_args

from safe_core.generations import DEFAULT_ENGINE_TEXTS, EngineTexts
from safe_core.ids import id_problem
from safe_core.matching_rule import RULE

Criterion = Literal["CR", "AH", "AC"]
CRITERIA: tuple[Criterion, ...] = get_args(Criterion)

FORMULAS = "safe-v0/1"
"""The version of the formulas in scoring.py; part of every fingerprint."""

UNKNOWN_ARCHETYPE = "Unknown"
"""The placeholder for a missing archetype, and the group of cases without one (contract.md, "Archetype")."""

MOST_COMBINATIONS = 100_000
"""How many pairs of a metric_id and an archetype may have overrides: each is checked when the policy is made."""

Setting = float | bool
Settings = Mapping[str, Setting]

# The shape of a layer in a document; each path of names is the dotted name of a setting.
_NUMBER, _FLAG = "a number", "true or false"
_Shape = Mapping[str, Any]
_LAYER: _Shape = {
    "thresholds": {criterion: {"pass": _NUMBER, "review": _NUMBER} for criterion in CRITERIA},
    "weights": dict.fromkeys(CRITERIA, _NUMBER),
    "strictAH": _FLAG,
}
_ENGINE_TEXTS: Mapping[str, str] = {"errorTexts": "errors", "placeholderTexts": "placeholders"}
"""Keys of a document, and what of EngineTexts they give."""


class InvalidPolicy(ValueError):
    """A configuration that is refused; the message names the layer and the values (contract.md, "Configuration")."""


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidPolicy(f"{name} is not {_NUMBER}")
    try:
        number = float(value)
    except OverflowError as error:
        raise InvalidPolicy(f"{name} is not finite") from error
    if not math.isfinite(number):
        raise InvalidPolicy(f"{name} is not finite")
    return number + 0.0  # -0.0 becomes 0.0, so that equal rules have equal fingerprints


def _setting(name: str, value: object) -> Setting:
    if name != "strictAH":
        return _number(name, value)
    if not isinstance(value, bool):
        raise InvalidPolicy(f"{name} is neither true nor false")
    return value


@dataclass(frozen=True, slots=True)
class Threshold:
    """The two bounds of one criterion: 0 <= review <= pass <= 1 (contract.md, "Label")."""

    review: float
    pass_: float

    def __post_init__(self) -> None:
        review, pass_ = _number("review", self.review), _number("pass", self.pass_)
        if review < 0:
            raise InvalidPolicy(f"review {review} is below 0")
        if pass_ > 1:
            raise InvalidPolicy(f"pass {pass_} is above 1")
        if review > pass_:
            raise InvalidPolicy(f"review {review} is above pass {pass_}")
        object.__setattr__(self, "review", review)
        object.__setattr__(self, "pass_", pass_)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """One threshold for each criterion; the defaults are those of contract.md, "Label"."""

    CR: Threshold = Threshold(review=0.5, pass_=0.8)
    AH: Threshold = Threshold(review=0.5, pass_=1.0)
    AC: Threshold = Threshold(review=0.5, pass_=0.8)


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of the composite: finite, not below 0, their sum above 0 (contract.md, "Configuration")."""

    CR: float = 1.0
    AH: float = 1.0
    AC: float = 1.0

    def __post_init__(self) -> None:
        for criterion in CRITERIA:
            weight = _number(criterion, getattr(self, criterion))
            if weight < 0:
                raise InvalidPolicy(f"{criterion} {weight} is below 0")
            object.__setattr__(self, criterion, weight)
        total = self.CR + self.AH + self.AC
        if total == 0:
            raise InvalidPolicy("the sum of the weights is 0")
        if math.isinf(total):  # the composite would be no number
            raise InvalidPolicy("the sum of the weights is not finite")


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything that decides about one case, once its expectations and output are given."""

    thresholds: Thresholds = Thresholds()
    weights: Weights = Weights()
    strict_ah: bool = False

    def __post_init__(self) -> None:
        _setting("strictAH", self.strict_ah)

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Make the rules from the values of all ten settings; raises InvalidPolicy naming the setting."""
        thresholds = {c: _threshold(settings, c) for c in CRITERIA}
        try:
            weights = Weights(**{c: settings[f"weights.{c}"] for c in CRITERIA})
        except InvalidPolicy as error:
            raise InvalidPolicy(f"weights: {error}") from error
        return cls(Thresholds(**thresholds), weights, settings["strictAH"])  # type: ignore[arg-type]  # checked when made

    def settings(self) -> dict[str, Setting]:
        """Give the values of all ten settings by name."""
        named: dict[str, Setting] = {}
        for criterion in CRITERIA:
            threshold: Threshold = getattr(self.thresholds, criterion)
            named[f"thresholds.{criterion}.pass"] = threshold.pass_
            named[f"thresholds.{criterion}.review"] = threshold.review
        for criterion in CRITERIA:
            named[f"weights.{criterion}"] = getattr(self.weights, criterion)
        return named | {"strictAH": self.strict_ah}


@dataclass(frozen=True, slots=True)
class Override:
    """The settings that one metric_id or archetype changes, by dotted name; the others stay as they are."""

    settings: Settings = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = set(Rules().settings())
        for name in self.settings:
            if name not in known:
                raise InvalidPolicy(f"{name}: unknown setting")
        checked = {name: _setting(name, value) for name, value in self.settings.items()}
        object.__setattr__(self, "settings", MappingProxyType(checked))

    @classmethod
    def from_document(cls, document: object) -> Self:
        """Read one override as written in a configuration file; raises InvalidPolicy naming the key."""
        return cls(dict(_flatten(document, _LAYER, "")))


@dataclass(frozen=True, slots=True)
class Policy:
    """The whole configuration of scoring; every combination that a case can meet is valid.

    `metric_id` and `archetype` map names to overrides; one for the archetype "Unknown" serves the cases without any.
    Raises InvalidPolicy naming the layers and the values.
    """

    default: Rules = Rules()
    metric_id: Mapping[str, Override] = field(default_factory=dict)
    archetype: Mapping[str, Override] = field(default_factory=dict)
    engine_texts: EngineTexts = DEFAULT_ENGINE_TEXTS
    fingerprint: str = field(init=False)
    _effective: Mapping[tuple[str | None, str | None], Rules] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for kind in ("metric_id", "archetype"):
            overrides: Mapping[str, Override] = getattr(self, kind)
            for name in overrides:
                if problem := id_problem(name):
                    raise InvalidPolicy(f"overrides.{kind}: a name {problem}")
            object.__setattr__(self, kind, MappingProxyType(dict(sorted(overrides.items()))))
        object.__setattr__(self, "_effective", MappingProxyType(self._combinations()))
        object.__setattr__(self, "fingerprint", self._hash())

    @classmethod
    def from_document(cls, document: Mapping[str, object], *, strict_ah_everywhere: bool = False) -> Self:
        """Read `thresholds`, `weights`, `strictAH`, `overrides` and the engine's texts; absent or null ones are
        default.

        `strict_ah_everywhere` is the command line's `--strict-ah`, which beats all layers. Raises InvalidPolicy.
        """
        known = _object(document, (*_LAYER, "overrides", *_ENGINE_TEXTS), "")
        given = {key: value for key, value in known.items() if value is not None}
        overrides = given.pop("overrides", {})
        texts = _engine_texts({key: given.pop(key) for key in _ENGINE_TEXTS if key in given})
        default = Rules().settings() | dict(_flatten(given, _LAYER, ""))
        layers = {kind: _overrides(overrides, kind) for kind in ("metric_id", "archetype")}
        if strict_ah_everywhere:
            default["strictAH"] = True
            layers = {kind: {n: _without_strictness(o) for n, o in named.items()} for kind, named in layers.items()}
        return cls(Rules.of(default), **layers, engine_texts=texts)

    def rules_for(self, metric_id: str | None, archetype: str | None) -> Rules:
        """Give the rules for one case: archetype beats metric_id beats default, setting by setting."""
        group = UNKNOWN_ARCHETYPE if archetype is None else archetype
        layers = metric_id if metric_id in self.metric_id else None, group if group in self.archetype else None
        return self._effective[layers]

    def configuration(self) -> dict[str, Any]:
        """Give the document of a report's `configuration`; from_document() reads it back to an equal policy."""
        return _nested(self.default.settings()) | {
            "overrides": {
                "metric_id": {name: _nested(override.settings) for name, override in self.metric_id.items()},
                "archetype": {name: _nested(override.settings) for name, override in self.archetype.items()},
            },
            **{key: sorted(getattr(self.engine_texts, name)) for key, name in _ENGINE_TEXTS.items()},
        }

    def _combinations(self) -> dict[tuple[str | None, str | None], Rules]:
        if (len(self.metric_id) + 1) * (len(self.archetype) + 1) > MOST_COMBINATIONS:
            raise InvalidPolicy(
                f"overrides: {len(self.metric_id)} for metric_id and {len(self.archetype)} for archetype "
                f"make more than {MOST_COMBINATIONS} combinations"
            )
        default = self.default.settings()
        effective: dict[tuple[str | None, str | None], Rules] = {}
        for metric_id, archetype in product((None, *self.metric_id), (None, *self.archetype)):
            by_metric = {} if metric_id is None else self.metric_id[metric_id].settings
            by_archetype = {} if archetype is None else self.archetype[archetype].settings
            try:
                effective[metric_id, archetype] = Rules.of({**default, **by_metric, **by_archetype})
            except InvalidPolicy as error:
                raise InvalidPolicy(f"{_layer_names(metric_id, archetype)}{error}") from error
        return effective

    def _hash(self) -> str:
        """Hash what can change a score, and only that: a setting that an override merely repeats is left out."""
        default = self.default.settings()
        by_metric = {name: _differing(override, default) for name, override in self.metric_id.items()}
        moved = {setting for settings in by_metric.values() for setting in settings}
        fixed = {name: value for name, value in default.items() if name not in moved}
        by_archetype = {name: _differing(override, fixed) for name, override in self.archetype.items()}
        canonical = {
            "match": RULE,
            "formulas": FORMULAS,
            "default": default,
            "metric_id": {name: settings for name, settings in by_metric.items() if settings},
            "archetype": {name: settings for name, settings in by_archetype.items() if settings},
        }
        errors = self.engine_texts.errors
        if errors != DEFAULT_ENGINE_TEXTS.errors:  # the default leaves the fingerprint as it was before there were any
            canonical["error_texts"] = sorted(errors)
        text = json.dumps(canonical, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _engine_texts(given: Mapping[str, object]) -> EngineTexts:
    read: dict[str, frozenset[str]] = {}
    for key, texts in given.items():
        if not isinstance(texts, list | tuple) or not all(isinstance(text, str) and text.strip() for text in texts):
            raise InvalidPolicy(f"{key} is not a list of texts that are not blank")
        read[_ENGINE_TEXTS[key]] = frozenset(texts)
    return EngineTexts(**read)


def _threshold(settings: Settings, criterion: Criterion) -> Threshold:
    place = f"thresholds.{criterion}"
    try:
        return Threshold(review=settings[f"{place}.review"], pass_=settings[f"{place}.pass"])
    except InvalidPolicy as error:
        raise InvalidPolicy(f"{place}: {error}") from error


def _flatten(document: object, shape: _Shape, place: str) -> Iterator[tuple[str, Setting]]:
    """Yield the dotted name and value of each setting in a nested document of a known shape."""
    for key, value in _object(document, shape, place).items():
        name = f"{place}.{key}" if place else key
        if isinstance(shape[key], Mapping):
            yield from _flatten(value, shape[key], name)
        else:
            yield name, _setting(name, value)


def _nested(settings: Settings) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for name, value in settings.items():
        *sections, key = name.split(".")
        within = document
        for section in sections:
            within = within.setdefault(section, {})
        within[key] = value
    return document


def _object(document: object, known: Collection[str], place: str) -> Mapping[str, object]:
    """Give an object with none but known keys, or raise InvalidPolicy with a suggestion."""
    where = f"{place}: " if place else ""
    if not isinstance(document, Mapping):
        raise InvalidPolicy(f"{where}not an object")
    for key in document:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, n=1, cutoff=0.5)
            hint = f'did you mean "{close[0]}"?' if close else f"known are {', '.join(known)}"
            raise InvalidPolicy(f'{where}unknown key "{key}"; {hint}')
    return document


def _overrides(document: object, kind: str) -> dict[str, Override]:
    place = f"overrides.{kind}"
    named = _object(document, ("metric_id", "archetype"), "overrides").get(kind, {})
    if not isinstance(named, Mapping):
        raise InvalidPolicy(f"{place}: not an object")
    overrides: dict[str, Override] = {}
    for name, layer in named.items():
        try:
            overrides[name] = Override.from_document(layer)
        except InvalidPolicy as error:
            raise InvalidPolicy(f"{place}.{name}: {error}") from error
    return overrides


def _without_strictness(override: Override) -> Override:
    return Override({name: value for name, value in override.settings.items() if name != "strictAH"})


def _differing(override: Override, from_: Settings) -> dict[str, Setting]:
    return {name: value for name, value in override.settings.items() if name not in from_ or from_[name] != value}


def _layer_names(metric_id: str | None, archetype: str | None) -> str:
    names = {"metric_id": metric_id, "archetype": archetype}
    layers = [f"overrides.{kind}.{name}" for kind, name in names.items() if name is not None]
    return " with ".join(layers) + ": " if layers else ""


DEFAULT_POLICY = Policy()
