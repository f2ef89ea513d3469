# Needs git, make and Python 3.11 or newer; everything else is set up below .venv and .cache.

PYTHON ?= python3
ARGS ?=
LANES ?=
BIN := .venv/bin
TESTS = $(BIN)/python -m tests.support.run -q --durations=10 -n 4 --dist worksteal
OSTLER_STATE_DIR ?= $(CURDIR)/.ostler

.DEFAULT_GOAL := help
.PHONY: agent-schemas agents-drift help serve web sdk test test-all test-setup test-parts flaky check lint conformance chaos chaos-selftest bench eval schema format lock setup setup-runtime clean

help: ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

serve: setup-runtime web ## run the server; state in .ostler (ARGS="--port 0" for more)
	@OSTLER_STATE_DIR="$(OSTLER_STATE_DIR)" exec $(BIN)/ostler serve $(ARGS)

sdk: setup ## build the TypeScript SDK into sdk/typescript/dist, if it changed
	@$(PYTHON) tools/setup.py sdk

web: ## build the web UI into src/ostler/_web, if it changed
	@test -x $(BIN)/python || $(PYTHON) tools/setup.py runtime
	@$(PYTHON) tools/setup.py web

test: test-setup ## checks and the fast tests (LANES="web cluster" for others, ARGS="tests/server -k name" for some)
	@echo "test: pytest"
	@$(TESTS) $(if $(LANES),--lanes="$(LANES)") --session-timeout=2400 $(ARGS)

test-all: test-setup ## checks and all tests of all lanes
	@echo "test: pytest, all lanes"
	@$(TESTS) --lanes=all --session-timeout=14400 $(ARGS)

test-setup:
	@$(MAKE) --no-print-directory --jobs=2 lint test-parts

test-parts: setup
	@$(PYTHON) tools/setup.py web
	@$(PYTHON) tools/setup.py browser
	@$(PYTHON) tools/setup.py clients
	@$(PYTHON) tools/setup.py sdk

flaky: setup ## what failed here beside other tests and passed alone, and how often
	@$(BIN)/python -m tests.support.run --flaky

check: lint ## format, lint, types, architecture, freshness of generated files
	@echo "check: architecture"
	@$(BIN)/python -m pytest -q -n 2 tests/architecture

lint: setup ## format, lint and types alone
	@echo "check: ruff format, ruff check"
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@echo "check: mypy"
	@$(BIN)/mypy

conformance: setup ## run every agent through the whole suite and write what was found (ARGS="codex pi" for some)
	@$(BIN)/python -m tools.coverage $(ARGS)
	@$(BIN)/python -m tools.generate

agents-drift: setup ## compare the newest version of each agent on npm with the recorded one (ARGS="pi" for one, "pi@1.5.0" for a version)
	@$(BIN)/python -m tools.agents_drift $(ARGS)

agent-schemas: setup ## write schema/agents from the types that agents publish, or from recordings (ARGS="pi" for one)
	@$(BIN)/python -m tools.agent_schemas $(ARGS)

chaos: setup ## kill everything at random for ten minutes and at every failpoint (ARGS=30 for 30 minutes, ARGS=cluster)
ifeq ($(firstword $(ARGS)),cluster)
	@$(BIN)/python -m tests.chaos.cluster.cluster_long $(wordlist 2,2,$(ARGS))
else
	@$(BIN)/python -m tests.chaos.long $(or $(ARGS),10)
	@OSTLER_CHAOS_ALL=1 $(BIN)/python -m pytest -q tests/chaos/test_failpoints.py tests/chaos/test_power.py
endif

chaos-selftest: setup ## seed bugs and see that the chaos suite catches each (ARGS="late-resume" for some)
	@$(BIN)/python -m tests.chaos.selftest $(ARGS)

bench: setup web ## measure, beside the peer and alone; writes bench/RESULTS.md (ARGS="agents web" for some parts)
	@$(BIN)/python bench/run.py $(ARGS)

eval: setup ## small coding tasks for our own agent; plays transcripts unless ARGS="--model PROVIDER/MODEL"
	@$(BIN)/python -m tools.evals $(ARGS)

schema: setup ## write schema/ and docs/reference/ anew from the code
	@$(BIN)/python -m tools.generate

format: setup ## format the code and mend what can be mended
	@$(BIN)/ruff format --quiet . && $(BIN)/ruff check --quiet --fix .

lock: ## write the locks anew, keeping versions (ARGS=--upgrade for new ones)
	@$(PYTHON) tools/setup.py lock $(ARGS)

setup: ## install everything into .venv
	@$(PYTHON) tools/setup.py dev

setup-runtime:
	@$(PYTHON) tools/setup.py runtime

clean: ## remove what was installed and cached, not your state in .ostler
	@rm -rf .venv .cache src/ostler/_web web/node_modules tests/clients/node_modules sdk/typescript/node_modules sdk/typescript/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis bench/.work dist build
	@find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
