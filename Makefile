# Every target sets up what it needs: a fresh machine with Python and make is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo demo-spark test test-fresh test-slow test-spark test-databases test-js test-browser check format bench clean

demo: $(VENV)/.core
	@$(BIN)/muhat demo

demo-spark: $(VENV)/.spark
	@$(BIN)/muhat demo --engine spark

test: $(VENV)/.test
	@$(BIN)/python -m pytest -m "not slow and not spark and not databases and not javascript" -n 2

# The same tests on entropy of another key: make test-fresh KEY=monday
KEY ?= $(shell date +%s)
test-fresh: $(VENV)/.test
	@$(BIN)/python -m pytest -m "not spark and not databases and not javascript" -n 2 --entropy "$(KEY)"

test-slow: $(VENV)/.test
	@$(BIN)/python -m pytest -m slow -n 2

test-spark: $(VENV)/.spark
	@$(BIN)/python -m pytest -m spark tests/spark

test-databases: $(VENV)/.databases
	@$(BIN)/python -m pytest -m databases -n 2 tests/databases

# The client in js/ over the vectors of docs/wire.md, and its messages at Python's servers.
test-js: $(VENV)/.test js/node_modules/.installed
	@npm test --prefix js --silent
	@$(BIN)/python -m pytest -m javascript tests/protocols/test_javascript.py

# The same vectors in Debian's Chromium.
test-browser: js/node_modules/.installed
	@npm run test-browser --prefix js --silent

check: $(VENV)/.check
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

format: $(VENV)/.check
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(VENV)/.test
	@$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) js/node_modules

$(BIN)/python:
	@echo "creating $(VENV)" >&2
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	@touch $@

js/node_modules/.installed: js/package-lock.json
	@node --version >/dev/null 2>&1 || { echo "the client in js/ needs Node 20 or newer on the path" >&2; exit 1; }
	@cd js && npm ci --silent --no-audit --no-fund --ignore-scripts
	@touch $@

# Spark runs on Java, which pip cannot install.
$(VENV)/.spark: pyproject.toml | $(BIN)/python
	@java -version >/dev/null 2>&1 || { echo "Spark needs Java 17 or newer on the path" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,spark,dask]"
	@touch $@

# chDB is ClickHouse as a library. MariaDB is Debian's: where it is missing, its tests are skipped.
$(VENV)/.databases: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,databases]"
	@if command -v mariadb_config >/dev/null; then \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check mysqlclient; \
	else echo "no libmariadb-dev: nothing is asked of MariaDB" >&2; fi
	@touch $@

$(VENV)/.check: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,check]"
	@touch $@
