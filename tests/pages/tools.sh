#!/usr/bin/env bash
# Installs the browser that the tests of the pages run: Chromium, Debian's package (where none is there yet, and as root
# only). Without it the tests are skipped, loudly.
set -euo pipefail

if ! command -v chromium >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium
fi
