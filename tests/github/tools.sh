#!/usr/bin/env bash
# Installs act, which runs GitHub workflows on this machine, into .cache/act: a Python package that holds the program,
# checked against the hashes of the lock beside this file.
set -euo pipefail
cd "$(dirname "$0")/../.."

lock=tests/github/act.lock
if [ -e .cache/act/installed ] && cmp --silent "$lock" .cache/act/installed; then
  exit 0
fi
make --silent .cache/uv/bin/uv
rm -rf .cache/act
.cache/uv/bin/uv pip install --quiet --target .cache/act --require-hashes -r "$lock"
cp "$lock" .cache/act/installed
