# Needs python3 >= 3.11, git and make; everything else is installed into .venv, pinned and hashed.
# Another interpreter: make PYTHON=python3.12 …

PYTHON ?= python3
JOBS ?= 2

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# The name of a stamp carries the hash of what was installed, so a changed requirement installs again.
hash = $(shell cat $(1) | cksum | cut -d ' ' -f 1)
RUNTIME := $(VENV)/runtime-$(call hash,requirements.txt pyproject.toml)
DEVELOPMENT := $(VENV)/development-$(call hash,requirements.txt requirements-dev.txt pyproject.toml)

# The MCP servers that tests drive; node comes from the development requirements where the machine has none.
SERVERS := tests/npm/node_modules/installed-$(call hash,tests/npm/package-lock.json)

# mypy and Django load the settings, which make their keys in a data folder: not in the one that `reversi` uses.
SETTINGS := REVERSI_DATA=$(VENV)/lint-data DATABASE_URL=

# Without the options of whoever compiles: the files say what is installed, never where from.
COMPILE := CUSTOM_COMPILE_COMMAND="make requirements" $(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe \
	--strip-extras --no-emit-options

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help venv demo run servers test lint format slow mutants requirements clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do \
		printf '  make %-14s %s\n' "$$name" "$$text"; done

venv: $(RUNTIME) ## create .venv and install what Reversi needs to run

demo: $(RUNTIME) ## run an agent on real files, roll it back, and prove that the tree is what it was
	$(BIN)/reversi demo

run: $(RUNTIME) ## run console, API and worker on this machine, until Ctrl-C
	$(BIN)/reversi up

servers: $(SERVERS) ## install the MCP servers that tests drive

test: $(DEVELOPMENT) $(SERVERS) ## run the tests, on SQLite and on PostgreSQL where its server is installed
	$(BIN)/python -m pytest -n $(JOBS)

lint: $(DEVELOPMENT) ## check style, types, import contracts, migrations and the published schemas
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(SETTINGS) $(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(SETTINGS) $(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python -m reversi_sdk.schema --check
	$(SETTINGS) $(BIN)/python -m reversi_site.openapi --check

format: $(DEVELOPMENT) ## put the code into shape
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

slow: $(DEVELOPMENT) $(SERVERS) mutants ## run the tests that take long, and the mutants
	$(BIN)/python -m pytest -n $(JOBS) -m slow

mutants: $(DEVELOPMENT) $(SERVERS) ## break the rules one by one and see that a test notices each
	$(BIN)/python -m tests.mutants

requirements: $(DEVELOPMENT) ## compile the pinned requirements from the .in files
	$(COMPILE) --output-file requirements.txt requirements.in
	$(COMPILE) --output-file requirements-dev.txt requirements-dev.in

clean: ## remove what make and the tools made; a store's data stays
	rm -rf $(VENV) tests/npm/node_modules build dist *.egg-info .coverage .coverage.* htmlcov .hypothesis .import_linter_cache \
		.mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.x")'
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): | $(BIN)/pip
	$(PIP) --require-hashes -r requirements.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@rm -f $(VENV)/runtime-*
	@touch $@

$(DEVELOPMENT): $(RUNTIME)
	$(PIP) --require-hashes -r requirements-dev.txt
	@rm -f $(VENV)/development-*
	@touch $@

$(SERVERS): | $(DEVELOPMENT)
	$(BIN)/python -m tests.npm_servers
	@rm -f tests/npm/node_modules/installed-*
	@touch $@
