#!/usr/bin/env bash
# Installs what the tests of alerts, dashboard and compose.yaml run: promtool, prometheus, alertmanager and amtool from
# Debian's packages (where they are not there yet, and as root only), and the parser of compose files into .cache/.
set -euo pipefail
cd "$(dirname "$0")/../.."

COMPOSE_GO=v2.16.2

missing() { ! command -v "$1" >/dev/null; }

if missing promtool || missing prometheus || missing amtool; then
  # Nothing is to start by itself: the tests start what they need, on ports of their own.
  policy=/usr/sbin/policy-rc.d
  [ -e "$policy" ] || { printf '#!/bin/sh\nexit 101\n' > "$policy"; chmod +x "$policy"; trap 'rm -f "$policy"' EXIT; }
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus prometheus-alertmanager
fi

if [ ! -x .cache/compose-go/cmd ]; then
  GOBIN="$PWD/.cache/compose-go" go install "github.com/compose-spec/compose-go/v2/cmd@$COMPOSE_GO"
fi
