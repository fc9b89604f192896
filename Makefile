# Turret. Needs Python 3.11 or newer, and make. Each target first installs what it needs into .venv.
#
#   make demo     two bots make a signed deal through a broker, and the transcript is verified
#   make test     the tests
#   make check    what a change must pass: format, lint, types, imports, size, known advisories, tests
#   make browser  the pages of owners and operators, and the one that verifies, in the Chromium that the system has (installed where it can be, else skipped)
#   make conformance   the official judges of MCP and A2A, fetched when it runs; writes docs/reference/conformance.md
#   make bench    how fast it is: the short form of every measurement (bench/README.md); BENCH_ARGS="dealers ws" chooses
#   make bench-dealers, bench-mcp, bench-idle, …   one of them at length; BENCH_ARGS="--runs 5 --json" goes to it
#   make docs     print docs/reference/ from the code again
#   make conformance-ws   the Autobahn suite alone, on both WebSocket ports (needs python2.7)
#   make soak     the long run: a broker killed ROUNDS times under load, SECONDS of simulated brokers under faults,
#                 properties with many examples, and the mutants: does each rule's test bite?
#   make pythons  every Python of this machine makes the same artifacts and grades of the same trials
#   make fuzz     every reader of what others send, FUZZ_SECONDS each
#
# PYTHON=/path/to/python3 chooses the Python; PYTEST_ARGS="-k ring -n0" goes to pytest.

.PHONY: help demo test check format lint types imports size advisories docs soak pythons fuzz browser conformance conformance-ws bench clean venv-server venv-dev venv-bench venv-browser
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

export PYTHON
BIN := .venv/bin
PYTEST_ARGS ?= -n 3 --dist worksteal
ROUNDS ?= 200
SECONDS ?= 600
SEED ?= 1000
FUZZ_SECONDS ?= 20
JOBS ?= 2
BENCH_ARGS ?=

help:
	@sed -n 's/^#   //p' Makefile

venv-server:
	@sh .ci/venv server

venv-dev:
	@sh .ci/venv dev

venv-bench:
	@sh .ci/venv bench

venv-browser:
	@sh .ci/venv browser

demo: venv-server
	@$(BIN)/turret demo

test: venv-dev
	$(BIN)/python -m pytest $(PYTEST_ARGS)

check: format lint types imports size advisories test

format: venv-dev
	$(BIN)/ruff format --check .

lint: venv-dev
	$(BIN)/ruff check .

types: venv-dev
	$(BIN)/mypy

imports: venv-dev
	$(BIN)/lint-imports

size: venv-dev
	$(BIN)/python tests/sizes.py

advisories:
	@sh .ci/advisories

# The pages of docs/reference/ that are printed from the code.
docs: venv-dev
	$(BIN)/python docs/generate.py

# What trials leave, made by each Python of this machine: the same refs, the same grades.
pythons: venv-dev
	$(BIN)/python tests/pythons.py --install

soak: venv-dev
	KILL_ROUNDS=$(ROUNDS) $(BIN)/python -m pytest -n0 --timeout=1200 tests/crash
	KEYED_STEPS=40 $(BIN)/python -m pytest -n0 tests/keyed
	DAMAGES=60 STOPPED_S=35 $(BIN)/python -m pytest -n0 --timeout=1200 tests/realfaults
	HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -n0 --timeout=1200 tests/history
	$(BIN)/python -m tests.simulation --seconds $(SECONDS) --from-seed $(SEED)
	$(BIN)/python -m tests.simulation --seconds $(SECONDS) --from-seed $$(($(SEED) + 100000))
	HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -n $(JOBS) --timeout=1200 tests/broker/wire tests/broker/core tests/programs
	$(BIN)/python tests/mutants.py --jobs $(JOBS)

browser: venv-browser
	@sh .ci/browser

# The official judges of MCP; they are installed into the user's cache, or where TURRET_JUDGES says.
conformance: venv-dev
	$(BIN)/python -m tests.conformance.run

conformance-ws: venv-dev
	$(BIN)/python -m tests.conformance.websocket

fuzz: venv-dev
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest -n $(JOBS) --timeout=1200 -rP tests/fuzz

bench: venv-bench
	$(BIN)/python -m bench $(BENCH_ARGS)

bench-%: venv-bench
	$(BIN)/python -m bench.$* $(BENCH_ARGS)

clean:
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist turret-demo
