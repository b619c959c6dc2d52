"""`safe lint` from beginning to end: what it looks at, prints, and exits with."""

import sys
from typing import Literal

from consumer.exit_codes import CODE_OF_GATE
from consumer.offline.lint_files import LintRequest, lint_batches
from consumer.offline.pages.findings import annotations, print_table
from consumer.terminal import print_json, print_message, result_console
from consumer.text import count_of
from safe_core import Policy
from safe_core.lint_rules import Severity

LintFormat = Literal["console", "json"]


def lint_command(
    policy: Policy,
    request: LintRequest,
    *,
    format_: LintFormat = "console",
    fail_on: Severity | Literal["never"] = "warning",
    github_actions: bool = False,
) -> int:
    """Look at test cases, print what was found, and give the exit code; raises ConfigurationError."""
    lint = lint_batches(policy, request)
    print_message(*lint.remarks)
    if lint.answers == 0:
        print_message("no output answers any of the test cases: is --outputs the right file?")
    if lint.gone:
        them = "it" if lint.gone == 1 else "them"
        gone = f"{count_of(lint.gone, 'finding')} of {request.baseline} no longer found"
        print_message(f"{gone}: remove {them} from the file")
    if github_actions:
        for line in annotations(lint):
            print(line, file=sys.stderr)  # so that JSON on standard output stays valid
    if format_ == "json":
        print_json(lint.document())
    else:
        print_table(lint, result_console())
    return CODE_OF_GATE[fail_on == "never" or lint.passes(fail_on)]
