"""Where a finding of a command goes: files by their suffixes, one format on standard output."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from consumer.offline.destinations import SUFFIXES, Destination, Format, check_writable, one_format
from consumer.offline.report_commands import print_remarks
from consumer.offline.whole_files import write_whole

_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class Rendering(Generic[_Found]):
    """What makes each format of one thing, and what was asked for; made by rendering()."""

    rendered: Mapping[str, Callable[[_Found], str]]
    asked: Sequence[Destination]

    def give(self, found: _Found, headline: str) -> None:
        """Write the files, then print what goes to standard output, or else the headline to standard error."""
        for each in self.asked:
            if each.path is not None:
                write_whole(each.path, self.rendered[each.format](found))
        print_remarks(f"wrote {each.path}" for each in self.asked if each.path is not None)
        on_stdout = next((each.format for each in self.asked if each.path is None), None)
        if on_stdout is None:
            print_remarks([headline])
        else:
            print(self.rendered[on_stdout](found), end="")


def rendering(
    rendered: Mapping[str, Callable[[_Found], str]],
    format_: Format | None,
    files: Sequence[str],
    inputs: Sequence[Path],
    *,
    force: bool,
) -> Rendering[_Found]:
    """Read `--format` and `--output`; raises ConfigurationError where a file must not be written."""
    suffixes: Mapping[str, Format] = {suffix: each for suffix, each in SUFFIXES.items() if each in rendered}
    asked = one_format(format_, files, suffixes)
    check_writable(asked, inputs, force=force)
    return Rendering(rendered, asked)
