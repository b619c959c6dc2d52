#!/usr/bin/env bash
# Installs what the test of the image builds it with, without an engine: buildah and mmdebstrap, Debian's packages (where
# they are not there yet, and as root only). Without them the test is skipped, loudly.
set -euo pipefail

missing() { ! command -v "$1" >/dev/null; }

if missing buildah || missing mmdebstrap; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends buildah mmdebstrap
fi
