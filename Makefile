# Every target sets up what it needs: a fresh machine with Python and make is enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow check format bench clean

demo: $(VENV)/.core
	@$(BIN)/muhat demo

test: $(VENV)/.test
	@$(BIN)/python -m pytest -m "not slow" -n 2

test-slow: $(VENV)/.test
	@$(BIN)/python -m pytest -m slow -n 2

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
	rm -rf $(VENV)

$(BIN)/python:
	@echo "creating $(VENV)" >&2
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test]"
	@touch $@

$(VENV)/.check: pyproject.toml | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[test,check]"
	@touch $@
