"""The TypeScript package as its users have it: packed, installed beside others, and run by more than one Node.js."""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

from tests.conftest import missing
from tests.support.kafka_broker import PROJECT
from tests.support.node import INSTALL_SECONDS, node_project, run

CLIENT = PROJECT / "clients" / "typescript"
EXAMPLES = PROJECT / "consumer" / "examples" / "subscriber" / "typescript"
NODES = Path(__file__).parent / "nodes"
VERSIONS = ("22", "24")
_INSTALL = [
    "npm",
    "install",
    "--offline",
    "--no-save",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
]

# The settings of a command line tool in TypeScript that ts-node runs as CommonJS, as factory-cli is one.
_COMMONJS = {
    "target": "ES2020",
    "module": "commonjs",
    "strict": True,
    "esModuleInterop": True,
    "forceConsistentCasingInFileNames": True,
    "resolveJsonModule": True,
    "outDir": "dist",
}
_ESM = {
    "target": "ES2022",
    "module": "NodeNext",
    "strict": True,
    "noUncheckedIndexedAccess": True,
    "exactOptionalPropertyTypes": True,
    "erasableSyntaxOnly": True,
    "noEmit": True,
}


class Users(NamedTuple):
    """Two projects that have installed the package: `commonjs` runs in ts-node, `esm` in Node.js itself."""

    root: Path
    nodes: dict[str, Path]

    def command(self, version: str, program: str) -> list[str]:
        """Give the command that runs a program: in ts-node with Node.js 22, as a module with 24."""
        kind = {"22": "commonjs", "24": "esm"}[version]
        # KafkaJS 2.2.4 sets timers that lie in the past, of which Node.js 24 warns.
        quiet = ["--disable-warning=TimeoutNegativeWarning"]
        through = quiet if kind == "esm" else [str(self.root / "node_modules/ts-node/dist/bin.js")]
        return [str(self.nodes[version]), *through, str(self.root / kind / program)]


def packed(folder: Path) -> Path:
    """Pack the package into a folder, as a release does."""
    pack = ["npm", "pack", "--loglevel=error", f"--pack-destination={folder}"]
    return folder / run(node_project(CLIENT), *pack, timeout_seconds=INSTALL_SECONDS).stdout.split()[-1]


def nodes() -> dict[str, Path]:
    """Each version of Node.js that the package is tried with."""
    folder = node_project(NODES) / "node_modules"
    found = {version: folder / f"node-{version}" / "bin" / "node" for version in VERSIONS}
    if absent := [version for version, path in found.items() if not path.is_file()]:
        missing(f"the TypeScript package: no Node.js {' and '.join(absent)} for this platform")
    return found


def users_of(tarball: Path, root: Path) -> Users:
    """Make both projects, with the examples as their code."""
    shutil.copytree(node_project(CLIENT) / "node_modules", root / "node_modules", symlinks=True)
    beside = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    _write(root / "package.json", {"name": "users", "private": True, "dependencies": beside})
    run(root, *_INSTALL, str(tarball), timeout_seconds=INSTALL_SECONDS)
    for kind, package, options in (("commonjs", {}, _COMMONJS), ("esm", {"type": "module"}, _ESM)):
        shutil.copytree(EXAMPLES, root / kind)
        _write(root / kind / "package.json", {"name": kind, "private": True, **package})
        _write(root / kind / "tsconfig.json", {"compilerOptions": {**options, "types": ["node"]}})
    return Users(root, nodes())


def _write(path: Path, document: object) -> None:
    path.write_text(json.dumps(document), encoding="utf-8")
