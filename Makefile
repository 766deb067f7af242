# Everything one does with this project. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROVE_SECONDS ?= 600
REPORT ?= ydb-report.md
RUN_STAMP := $(VENV)/.installed-run
DEV_STAMP := $(VENV)/.installed
PROTOS := $(wildcard proto/clepsydra/v1/*.proto)

.DEFAULT_GOAL := help
.PHONY: help up install install-run test test-plain test-postgres test-ydb wheel lint format proto lock bench bench-peers prove \
	chaos fuzz clean

help: ## This list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

install: $(DEV_STAMP) ## Create .venv and install everything: what running needs, and what tests and lint need

install-run: $(RUN_STAMP) ## Create .venv and install only what running needs

# pip's own lines are the progress. --require-hashes: only the files that the lock names. --no-deps: the lock is complete.
PIP_INSTALL = $(BIN)/python -m pip install --disable-pip-version-check --no-deps

$(RUN_STAMP): requirements/run.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Clepsydra needs Python 3.11 or newer; set PYTHON=")'
	@echo "Installing what running needs into $(VENV): only this first time."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) --require-hashes -r requirements/run.txt
	@$(PIP_INSTALL) --quiet --no-build-isolation -e .
	@touch $@

$(DEV_STAMP): requirements/dev.txt $(RUN_STAMP)
	@echo "Installing what tests need into $(VENV)."
	@$(PIP_INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@

up: install-run ## Start a scheduler and a worker on ./clepsydra.db (Ctrl-C stops them)
	$(BIN)/clepsydra up

test: install ## Run every test
	$(BIN)/python -m pytest

test-plain: install ## Run the tests that the fast path could change, without the fast path
	CLEPSYDRA_FASTPATH=off $(BIN)/python -m pytest tests/unit tests/conformance tests/scheduler tests/worker tests/end_to_end

test-postgres: install ## Run the tests of the PostgreSQL store, in full, on a server: PG=postgresql://...
	CLEPSYDRA_TEST_POSTGRES=$(PG) FLEET_ACTIONS=50000 $(BIN)/python -m pytest --timeout 3600 tests/postgres tests/conformance -k postgres

test-ydb: install ## Test a YDB server, with a report at the end: YDB=grpc://localhost:2136/local (REPORT=ydb-report.md)
	@test -n "$(YDB)" || { echo "name the server: make test-ydb YDB=grpc://localhost:2136/local"; exit 2; }
	CLEPSYDRA_TEST_YDB=$(YDB) $(BIN)/python -m pytest -v -n $(or $(JOBS),2) -p tests.ydb.report --ydb-report $(REPORT) \
		tests/ydb/test_calls.py tests/ydb/test_statements.py tests/conformance

SCHEMA = $(BIN)/check-jsonschema --builtin-schema

lint: install ## Formatting, lint rules, import contract, types, workflows
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	$(SCHEMA) custom.github-workflows-require-timeout .github/workflows/*.yml
	$(SCHEMA) vendor.compose-spec deploy/compose.yaml

wheel: ## Build a wheel, install it into a venv of its own, and try it
	rm -rf dist $(VENV)-wheel
	$(PYTHON) -m venv $(VENV)-wheel
	$(VENV)-wheel/bin/pip wheel --quiet --disable-pip-version-check --no-deps -w dist .
	$(VENV)-wheel/bin/pip install --quiet --disable-pip-version-check dist/*.whl
	$(VENV)-wheel/bin/python -m tests.try_wheel

format: install ## Rewrite the sources as `make lint` wants them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

proto: install ## Generate the Python code of the .proto files
	$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=proto --pyi_out=proto --grpc_python_out=proto \
		$(PROTOS)

# Three lock files with one set of versions: what running needs, the same with the drivers of all stores, and everything.
LOCK_ARGS ?= --upgrade
COMPILE = $(VENV)-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links

lock: ## Choose the newest allowed versions of all dependencies anew (LOCK_ARGS=: keep the chosen ones)
	$(PYTHON) -m venv $(VENV)-lock && $(VENV)-lock/bin/pip install --quiet uv
	$(COMPILE) $(LOCK_ARGS) --all-extras --group dev pyproject.toml -o requirements/dev.txt
	$(COMPILE) -c requirements/dev.txt --all-extras --group build pyproject.toml -o requirements/stores.txt
	$(COMPILE) -c requirements/dev.txt --group build pyproject.toml -o requirements/run.txt

bench: install ## Measure this machine: creates, drain, lateness, memory, idle CPU
	$(BIN)/python -m benchmarks

bench-peers: install ## The same work on other tools, beside ours: 50 minutes (ARGS=--quick: some)
	$(BIN)/python -m benchmarks.peers $(ARGS)

prove: install ## Every interleaving of small worlds, then simulated runs, for PROVE_SECONDS (600) on all cores
	$(BIN)/python -m tests.prove --seconds $(PROVE_SECONDS) $(ARGS)

chaos: install ## Real processes, killed, paused, cut off and starved for about an hour
	CHAOS=long $(BIN)/python -m pytest --timeout 3600 tests/chaos
	$(BIN)/python -m tests.chaos --store sqlite --kills 300 --actions 100000
	$(BIN)/python -m tests.chaos --store postgres --kills 100 --actions 100000

fuzz: install ## Generated calls: 50,000 to the API, and long random sequences to every store, for some minutes
	$(BIN)/python -m tests.fuzz --calls 50000
	$(BIN)/python -m tests.stateful --examples 100

clean: ## Remove what the targets above made
	rm -rf $(VENV) $(VENV)-lock $(VENV)-wheel build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
