"""The browser in which pages are looked at."""

from collections.abc import AsyncIterator

import pytest

from tests.conftest import missing
from tests.support.browser import Browser, BrowserMissingError, browser


@pytest.fixture
async def chrome(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    try:
        async with browser(tmp_path_factory.mktemp("profile")) as started:
            yield started
    except BrowserMissingError as error:
        missing(str(error))
