# Everything that a person or a machine does here. `make` alone lists it.
#
# Needs Python 3.11 or newer with pip. The tests against a broker also need Java 17 and Maven, or
# SAFE_TEST_BOOTSTRAP_SERVERS=host:port of an Apache Kafka 4 that they may fill with topics.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
UV     := .cache/uv/bin/uv
DIST   ?= dist
CODE   := safe_core consumer safe_scorer tests bench clients
# Files of tests that are run at once: more than there are cores, since the tests with a broker wait; with three for each
# core, everything took longer.
CORES  := $(shell nproc 2>/dev/null || echo 2)
JOBS   ?= $(shell echo $$((2 * $(CORES) + 1)))
PARALLEL = --dist loadfile --no-loadscope-reorder
# Tests start hundreds of processes: each would compile everything again.
test test-fast: export PYTHONDONTWRITEBYTECODE :=
# And a hundred programs in Go, each for a second: collecting their garbage on all cores takes a fifth of it.
test test-fast: export GOGC := 400
test test-fast: export GOMAXPROCS := 1
# In memory, where there is room, what they write costs a tenth less processor time.
IN_MEMORY = $(shell bash tests/in_memory.sh)
test test-fast: export TMPDIR ?= $(or $(IN_MEMORY),/tmp)

# pip checks every file that it installs against the hashes of the lock; the package itself adds nothing to them.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCK    := $(UV) pip compile --quiet --upgrade --universal --generate-hashes --python-version 3.11 \
           --no-header --no-emit-index-url --no-emit-find-links

.DEFAULT_GOAL := help
.PHONY: help setup demo check format test tools test-fast chaos mutants certify bench yardstick release lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(VENV)/.dev ## install everything into .venv

demo: $(VENV)/.runtime ## see it run: embedded broker, worker, sample traffic
	$(BIN)/safe demo

check: $(VENV)/.dev ## formatting, lint, types
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy
	$(BIN)/mypy clients/github

format: $(VENV)/.dev ## format the code
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

test: $(VENV)/.dev ## all tests, including those with a real broker
	@# Meanwhile one process compiles the tests, else each of many does.
	@[ -d tests/core/__pycache__ ] || $(BIN)/python -m pytest --collect-only --quiet >/dev/null & \
	  $(MAKE) --no-print-directory tools; wait
	$(BIN)/python -m pytest -n $(JOBS) $(PARALLEL) --durations=10 $(PYTEST_ARGS)

tools: ## what the tests of alerts, chart and image run (Debian's packages need root where they are missing)
	@bash tests/monitoring/tools.sh || echo "NOT INSTALLED: the tests that need Prometheus will be skipped" >&2
	@bash tests/charts/tools.sh || echo "NOT INSTALLED: the tests of the chart and of the Dockerfile will be skipped" >&2
	@bash tests/api/tools.sh || echo "NOT INSTALLED: the tests of import safe_scorer from its wheel will be skipped" >&2
	@bash tests/github/tools.sh || echo "NOT INSTALLED: the tests of the GitHub Action will be skipped" >&2
	@bash tests/pages/tools.sh || echo "NOT INSTALLED: the tests of pages in a browser will be skipped" >&2
	@bash tests/image/tools.sh || echo "NOT INSTALLED: the test that builds the image will be skipped" >&2

test-fast: $(VENV)/.dev ## the tests of the code that need no broker
	$(BIN)/python -m pytest -n $(CORES) $(PARALLEL) -m "not broker and not artefact" $(PYTEST_ARGS)

chaos: export SAFE_TEST_CHAOS_EVENTS ?= 100000
chaos: export SAFE_TEST_CHAOS_ROUNDS ?= 20
chaos: $(VENV)/.dev ## workers killed, stopped and frozen under load, at full size
	$(BIN)/python -m pytest -s tests/broker/test_chaos.py $(PYTEST_ARGS)

certify: $(VENV)/.dev ## four hours of faults on three brokers (needs root); a second call continues
	$(BIN)/python -m tests.certify $(CERTIFY_ARGS)

mutants: $(VENV)/.dev ## take each guard of the exactly-once flow away, and expect a test to fail
	$(BIN)/python -m tests.certify.mutants

bench: $(VENV)/.dev ## speed beside other programs, latency, and cost by size: half an hour; bench/README.md explains
	$(BIN)/python -m bench.against_peers $(BENCH_ARGS)
	$(BIN)/python -m bench.latency
	$(BIN)/python -m bench.cost

yardstick: $(VENV)/.dev ## what the diagnosis gets right, beside the bounds that it must keep
	$(BIN)/python -m bench.yardstick $(YARDSTICK_ARGS)

release: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
release: $(VENV)/.dev $(UV) ## wheel, chart, list of what the image contains, and their checksums, into dist/
	@bash tests/charts/tools.sh
	rm -rf $(DIST)
	$(UV) build --quiet --wheel --out-dir $(DIST)
	.cache/chart-tools/bin/helm package charts/safe --destination $(DIST)
	$(BIN)/cyclonedx-py requirements requirements-image.lock --pyproject pyproject.toml --mc-type application \
	  --output-reproducible --of JSON --output-file $(DIST)/safe.cdx.json
	cd $(DIST) && rm -f .gitignore && sha256sum * > SHA256SUMS

lock: $(UV) ## update the lock files
	$(LOCK) pyproject.toml --group build --extra demo -o requirements.lock
	$(LOCK) pyproject.toml --group build --extra demo --extra judge --extra opentelemetry --group dev -o requirements-dev.lock
	$(LOCK) pyproject.toml --group build --extra opentelemetry --constraints requirements-dev.lock -o requirements-image.lock
	echo uv | $(LOCK) - -o requirements-uv.lock
	$(LOCK) tests/charts/tools.in -o tests/charts/tools.lock
	$(LOCK) tests/api/api.in --constraints requirements-dev.lock -o tests/api/api.lock
	$(LOCK) tests/github/act.in -o tests/github/act.lock
	$(LOCK) bench/peers/quix.in -o bench/peers/quix.lock
	$(LOCK) tests/charts/helm.in --no-deps -o tests/charts/helm.lock

clean: ## remove what the targets above have made
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "SAFE needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: requirements.lock pyproject.toml | $(BIN)/python
	$(INSTALL) --require-hashes -r requirements.lock
	$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

# The lock for development holds every pin of the other one, so the demo needs nothing more after it.
# uv takes seconds where pip takes half a minute; pip does it where it alone is told of an index.
$(VENV)/.dev: requirements-dev.lock requirements.lock pyproject.toml | $(BIN)/python $(UV)
	$(UV) pip install --quiet --python $(BIN)/python --require-hashes -r requirements-dev.lock || \
	  $(INSTALL) --require-hashes -r requirements-dev.lock
	$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $(VENV)/.runtime $@

# Beside .venv, which it fills; an environment of its own would take as long to make as all that uv installs.
$(UV): requirements-uv.lock | $(BIN)/python
	rm -rf .cache/uv.new
	$(INSTALL) --require-hashes --target .cache/uv.new -r requirements-uv.lock
	rm -rf .cache/uv && mv .cache/uv.new .cache/uv
	@touch $@
