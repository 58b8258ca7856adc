# Everything a newcomer runs. Each target does its own set-up in .venv: only make and Python 3.11+ are needed.
#   make test ARGS='-k watch -x'      passes ARGS on (to pytest, `kubemini demo`, `kubemini bench`)
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help demo test check lint format coverage bench wheel clients

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
# A plain path entry to this folder: the import hooks of other editable modes are invisible to type checkers.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat
# Every start reads the compiled modules; where Python may not write them by itself, each would compile all of them again.
COMPILE := $(BIN)/python -m compileall -q api bench controllers kubemini
ARGS ?=

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.ready ## a training run from start to end, in virtual time, as a timeline in the terminal
	$(BIN)/kubemini demo $(ARGS)

test: .venv/.ready-dev ## all tests
	$(BIN)/python -m pytest -n 2 $(ARGS)

check: lint test ## linters, type checkers, layer contracts, the wheel, and all tests

lint: .venv/.ready-dev ## linters, type checkers, layer contracts, the wheel
	$(BIN)/python .ci/lint.py

format: .venv/.ready-dev ## rewrite the code as the linters want it
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

coverage: .venv/.ready-dev ## all tests with branch coverage
	$(BIN)/python -m pytest -n 2 --cov --cov-report=term $(ARGS)

bench: .venv/.ready ## throughput of the control plane on this machine
	$(BIN)/kubemini bench $(ARGS)

clients: .venv/.ready ## kubectl 1.37 and helm 4 into .tools/bin, for the client tests
	$(BIN)/python tests/clients/binaries.py

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo 'kubemini needs Python 3.11 or later on PATH (or make PYTHON=...)' >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/.ready: pyproject.toml | .venv/bin/python
	$(INSTALL) --editable .
	@$(COMPILE)
	@touch $@

.venv/.ready-dev: pyproject.toml | .venv/bin/python
	$(INSTALL) --editable '.[dev]'
	@$(COMPILE)
	@touch .venv/.ready $@
