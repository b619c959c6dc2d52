"""`safe review` from beginning to end."""

import asyncio
import getpass
from collections.abc import Sequence
from pathlib import Path

from consumer.exit_codes import EXIT_OK
from consumer.files.outputs import open_all
from consumer.offline.review import Review
from consumer.offline.review_list import Listing
from consumer.offline.review_server import serve
from consumer.offline.triage import TriageRequest
from consumer.terminal import print_message
from safe_core import Policy


def review_command(
    policy: Policy, request: TriageRequest, outputs: Sequence[Path], *, by: str | None, port: int
) -> int:
    """Serve the page until it is stopped; raises ConfigurationError."""
    print_message("reading test cases and outputs")
    review = Review(policy, request, open_all(outputs))
    print_message(*review.remarks)
    asyncio.run(serve(review, Listing(answers=request.answers), by=by or getpass.getuser(), port=port))
    return EXIT_OK
