"""What must be true of the settings, one by one and together; each error names the setting by its origin."""

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Final

from pydantic import ValidationError

from consumer.errors import ConfigurationError
from consumer.settings.fields import POLICY_KEYS, VARIABLES, Settings, expected
from consumer.settings.file import ConfigurationFile
from consumer.settings.redaction import quoted
from consumer.settings.sources import Given, Layer
from safe_core import CRITERIA, InvalidPolicy, Policy


def validated(given: Layer) -> Settings:
    """Check each value by itself; raises ConfigurationError that names all the wrong ones."""
    try:
        return Settings.model_validate({name: entry.value for name, entry in given.items()})
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        # One problem a setting: a list of ten wrong elements is one wrong setting.
        problems = {str(problem["loc"][0]): problem.get("ctx", {}).get("error") for problem in reversed(found)}
        raise ConfigurationError(
            "; ".join(_unusable(name, given[name], problem) for name, problem in reversed(problems.items()))
        ) from None  # pydantic's message may quote a secret


def _unusable(name: str, entry: Given, problem: object) -> str:
    why = problem if isinstance(problem, ValueError) else "cannot be used"
    return f"{entry.origin}={quoted(name, entry.value, hidden=entry.hidden)} {why}; write {expected(name)}"


def _named(name: str, settings: Settings, given: Layer, *, default: str) -> str:
    """Name a setting by its origin, with its value; by the words in `default` if no source gave it."""
    value = quoted(name, getattr(settings, name), hidden=name in given and given[name].hidden)
    return f"{given[name].origin}={value}" if name in given else f"{default} {value} (default)"


def _inverted_thresholds(settings: Settings, given: Layer) -> Iterator[str]:
    for criterion in CRITERIA:
        review, enough = f"{criterion.lower()}_review", f"{criterion.lower()}_pass"
        if getattr(settings, review) > getattr(settings, enough):
            low = _named(review, settings, given, default=f"{criterion} review")
            high = _named(enough, settings, given, default=f"{criterion} pass")
            wrong = f"{low}: this review threshold is above its pass threshold, which is {high}"
            yield f"{wrong}; lower the review threshold or raise the pass threshold"


def _repeated_topics(settings: Settings, given: Layer) -> Iterator[str]:
    topics = {name: getattr(settings, name) for name in Settings.model_fields if name.endswith("_topic")}
    topics["expectations"] = (settings.expectations or "").removeprefix("topic:")
    for one, other in combinations(topics, 2):
        if topics[one] == topics[other]:
            names = (_named(name, settings, given, default="the " + name.replace("_", " ")) for name in (other, one))
            yield f"{' is the same topic as '.join(names)}; each needs its own"


_BY_PASSWORD: Final = ("kafka_sasl_username", "kafka_sasl_password")
_BY_TOKEN: Final = ("kafka_sasl_oauth_token_url", "kafka_sasl_oauth_client_id", "kafka_sasl_oauth_client_secret")
_SCOPE: Final = "kafka_sasl_oauth_scope"
_SECURED_BY: Final = {
    "SASL": ("kafka_sasl_mechanism", *_BY_PASSWORD, *_BY_TOKEN, _SCOPE),
    "SSL": ("kafka_ssl_cafile", "kafka_ssl_certfile", "kafka_ssl_keyfile", "kafka_ssl_key_password"),
}


def _unsecured(settings: Settings, given: Layer) -> Iterator[str]:
    """Credentials that are missing, and those that would silently not be used."""
    variable = VARIABLES["kafka_security_protocol"]
    protocol = settings.kafka_security_protocol
    named = _named("kafka_security_protocol", settings, given, default=variable)
    for kind, names in _SECURED_BY.items():
        for name in names:
            value = getattr(settings, name)
            if value is not None and kind not in protocol:
                choice = "SASL_SSL" if "SASL" in {kind, protocol[:4]} else "SSL"
                yield f"{given[name].origin} is set, but {named} does not use it; remove it, or set {variable}={choice}"
    if "SASL" in protocol:
        yield from _login(settings, given, named)
    if settings.kafka_ssl_keyfile and not settings.kafka_ssl_certfile:
        yield f"{given['kafka_ssl_keyfile'].origin} needs its certificate; set {VARIABLES['kafka_ssl_certfile']}"


def _login(settings: Settings, given: Layer, protocol: str) -> Iterator[str]:
    """What the mechanism needs and lacks, and what it would not use."""
    mechanism = settings.kafka_sasl_mechanism
    if mechanism is None:
        yield _missing("kafka_sasl_mechanism", given, protocol)
        return
    by_token = mechanism == "OAUTHBEARER"
    named = _named("kafka_sasl_mechanism", settings, given, default="")
    for name in _BY_TOKEN if by_token else _BY_PASSWORD:
        if getattr(settings, name) is None:
            yield _missing(name, given, named)
    for name in _BY_PASSWORD if by_token else (*_BY_TOKEN, _SCOPE):
        if getattr(settings, name) is not None:
            yield f"{given[name].origin} is set, but {named} does not use it; remove it"


def _missing(name: str, given: Layer, needed_by: str) -> str:
    if name in given:  # a blank value counts as none: a secret that nobody has filled in
        return f"{given[name].origin} is empty, and {needed_by} needs it; write {expected(name)}"
    return f"{needed_by} needs {VARIABLES[name]}: {expected(name)}"


def check_together(settings: Settings, given: Layer) -> None:
    """Raise ConfigurationError where settings contradict each other."""
    checks = (_inverted_thresholds, _repeated_topics, _unsecured)
    if problems := [problem for check in checks for problem in check(settings, given)]:
        raise ConfigurationError("; ".join(problems))


def policy_of(settings: Settings, given: Layer, file: ConfigurationFile, *, strict_everywhere: bool) -> Policy:
    """Make the policy of thresholds, weights and overrides; raises ConfigurationError."""
    document = {
        "thresholds": {criterion: _threshold(settings, criterion) for criterion in CRITERIA},
        "strictAH": settings.ah_strict,
        "errorTexts": settings.error_texts,
        "placeholderTexts": settings.placeholder_texts,
        **{key: file.entries[key] for key in POLICY_KEYS if key in file.entries},
    }
    try:
        return Policy.from_document(document, strict_ah_everywhere=strict_everywhere)
    except InvalidPolicy as error:  # the thresholds have been checked: the file's weights or overrides are wrong
        problem = str(error)
        beneath = _layer_beneath(problem, settings, given)
        raise ConfigurationError(f"{file.name}: {problem}{beneath}{_remedy(problem)}") from error


def _threshold(settings: Settings, criterion: str) -> dict[str, float]:
    return {bound: getattr(settings, f"{criterion.lower()}_{bound}") for bound in ("pass", "review")}


def _layer_beneath(problem: str, settings: Settings, given: Layer) -> str:
    """Name the general thresholds, where an override contradicts them."""
    found = re.search(r"thresholds\.(CR|AH|AC): review \S+ is above pass", problem)
    if found is None:
        return ""
    bounds = (f"{found[1].lower()}_{bound}" for bound in ("pass", "review"))
    named = [_named(name, settings, given, default=f"{found[1]} {name.rpartition('_')[2]}") for name in bounds]
    return f" (the general settings have {' and '.join(named)})"


_POLICY_EXPECTS: Final = {
    "thresholds": "0 <= review <= pass <= 1",
    "weights": "numbers from 0 up, not all 0",
    "strictAH": "true or false",
}


def _remedy(problem: str) -> str:
    """Say what to write instead, where the policy's own message does not."""
    if "; " in problem:  # an unknown key, with a suggestion
        return ""
    if problem.endswith("not an object"):
        return "; write { … } there"
    if problem.endswith("the sum of the weights is not finite"):
        return "; write smaller numbers"
    if problem.endswith("combinations"):
        return "; remove some of them"
    # The last match: the name of an override, which comes before it, may contain any word.
    named = re.findall("|".join(_POLICY_EXPECTS), problem)
    return f"; write {_POLICY_EXPECTS[named[-1]] if named else 'a name of 1 to 256 printable characters'}"
