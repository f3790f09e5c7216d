# The two commands of the README are `make run` and `make test`; CONTRIBUTING.md explains the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python
PROJECTS := pyproject.toml $(wildcard plugins/*/pyproject.toml)
APT_LISTS := $(wildcard tests/*/packages.txt)

.PHONY: run setup test check unit lab lab-shell bench packages clean

run: $(VENV)/.run
	@$(BIN)/cgotel agent --interval 2

setup: $(VENV)/.dev

test: $(VENV)/.dev packages check
	$(BIN)/python -m pytest

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/.dev
	$(BIN)/python -m pytest tests/unit tests/contract plugins

lab: $(VENV)/.dev packages
	$(BIN)/python -m tests.lab run

lab-shell: $(VENV)/.dev packages
	$(BIN)/python -m tests.lab shell

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/sweep.py

packages:
	@missing=$$(for p in $$(cat $(APT_LISTS) | sed 's/#.*//'); do \
	  dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done); \
	if [ -n "$$missing" ]; then \
	  $(SUDO) apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive $(SUDO) apt-get install -y -qq --no-install-recommends $$missing; fi

$(BIN)/uv:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet 'uv>=0.5,<1'

$(VENV)/.run: $(BIN)/uv $(PROJECTS)
	$(UV) -e .
	@touch $@

$(VENV)/.dev: $(BIN)/uv $(PROJECTS)
	$(UV) -e . --group dev
	@touch $@ $(VENV)/.run

clean:
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
