"""Files in a folder as Kubernetes mounts a Secret: all of them are replaced at once, by changing one symbolic link."""

import itertools
from collections.abc import Mapping
from pathlib import Path

_numbers = itertools.count()


def mount(folder: Path, files: Mapping[str, str]) -> Path:
    """Put the files into the folder, in place of those that were there; returns the folder."""
    version = folder / f"..{next(_numbers)}"
    version.mkdir(parents=True)
    for name, text in files.items():
        (version / name).write_text(text, encoding="utf-8")
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    link = folder / "..data_tmp"
    link.symlink_to(version.name)
    link.rename(folder / "..data")
    return folder
