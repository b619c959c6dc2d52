"""What an interpreter imports at its start, if this folder is on its path: lets its process be trapped."""

import importlib.util
import os
from pathlib import Path

_TOLD = os.environ.pop("TEST_TRAP", None)
if _TOLD is not None:
    # By its path: the process may be of another checkout, whose tests lack it.
    _spec = importlib.util.spec_from_file_location("trapped", Path(__file__).with_name("__init__.py"))
    assert _spec is not None
    assert _spec.loader is not None
    _trapped = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(_trapped)
    _trapped.install(Path(_TOLD))
