#!/usr/bin/env bash
# Makes an environment for the tests of `import safe_scorer` in .cache/api: what the commands on files need, pandas, and
# neither SAFE nor a Kafka client. Checked against the hashes of the lock beside this file.
set -euo pipefail
cd "$(dirname "$0")/../.."

lock=tests/api/api.lock
if [ -e .cache/api/installed ] && cmp --silent "$lock" .cache/api/installed; then
  exit 0
fi
uv=.cache/uv/bin/uv
make --silent "$uv"
rm -rf .cache/api
"$uv" venv --quiet --python "${PYTHON:-python3}" .cache/api
"$uv" pip install --quiet --python .cache/api --require-hashes -r "$lock"
cp "$lock" .cache/api/installed
