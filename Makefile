# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
PROJECTS := pyproject.toml lab/pyproject.toml constraints.txt
TESTS ?= # all, unless files are named
SUITE ?= # of benchmarks: all, unless one is named
FUZZ ?= 10000
INTERRUPTIONS ?= 2000
FLIPS ?= 2000
export PYTHONDONTWRITEBYTECODE := # kept bytecode saves every process of the tests some seconds of compilation

.PHONY: demo test thorough fuzz lint bench docs package fresh-clone clean

demo: $(VENV)/.demo
	$(BIN)/bochner compare --out demo

test: lint
	@tests/install_browser.sh
	$(BIN)/python -m pytest -n 2 $(TESTS)

fuzz: $(VENV)/.test
	BOCHNER_THOROUGH=1 BOCHNER_FUZZ=$(FUZZ) BOCHNER_INTERRUPTIONS=$(INTERRUPTIONS) BOCHNER_FLIPS=$(FLIPS) $(BIN)/python -m pytest -n 2 tests/fuzz tests/approximation/test_files.py

thorough: lint
	@tests/install_browser.sh
	BOCHNER_THOROUGH=1 $(BIN)/python -m pytest -n 2 $(TESTS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell README.md CHANGELOG.md CONTRIBUTING.md docs examples src tests lab/README.md lab/src lab/tests

bench: $(VENV)/.bench
	$(BIN)/bochner-lab bench $(SUITE)

docs: $(VENV)/.docs
	@rm -rf docs/reference/generated # pages of names that are gone would fail the build
	$(BIN)/python -m sphinx -W -q -E -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

package: $(VENV)/.test
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m build lab --outdir dist
	@packaging/smoke_test.sh $(BIN)/python

fresh-clone:
	packaging/fresh_clone.sh

clean:
	rm -rf $(VENV) demo dist docs/_build docs/figures docs/gallery docs/reference/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests lab -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(PROJECTS) | $(BIN)/python
	$(PIP) -e ".[plot]"
	@touch $@

$(VENV)/.bench: $(PROJECTS) | $(BIN)/python
	$(PIP) -e . -e lab
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: $(PROJECTS) | $(BIN)/python
	$(PIP) -e ".[docs]" -e lab
	@touch $@ $(VENV)/.bench $(VENV)/.demo

$(VENV)/.test: $(PROJECTS) tests/requirements.txt | $(BIN)/python
	$(PIP) -e ".[dev]" -e "lab[experiments]" -r tests/requirements.txt
	@touch $@ $(VENV)/.docs $(VENV)/.bench $(VENV)/.demo
