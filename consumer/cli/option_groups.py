"""Options that several commands take together: one parameter of a command, with a field for each of them."""

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any


def grouped(command: Callable[..., int]) -> Callable[..., int]:
    """Let typer see the fields of each parameter that is a NamedTuple as options of their own."""
    parameters = inspect.signature(command).parameters.values()
    groups = {each.name: each.annotation for each in parameters if hasattr(each.annotation, "_fields")}

    @wraps(command)
    def with_groups(**given: Any) -> int:  # noqa: ANN401 (the values of any options)
        filled = {name: group(*map(given.pop, group._fields)) for name, group in groups.items()}
        return command(**given, **filled)

    seen = [one for each in parameters for one in (_fields(groups[each.name]) if each.name in groups else [each])]
    with_groups.__signature__ = inspect.signature(command).replace(parameters=seen)  # type: ignore[attr-defined]
    return with_groups


def _fields(group: Any) -> Iterator[inspect.Parameter]:  # noqa: ANN401 (no type stands for every NamedTuple)
    for name, annotation in inspect.get_annotations(group).items():
        default = group._field_defaults[name]
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
