# make setup | test | fuzz | mutants | demo | bench | lint | docs. Each creates the environment it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: setup test fuzz mutants demo bench lint docs wheel clean

setup: $(VENV)/.installed

# torch first and alone: the constraint selects the tested build before anything else can ask for another one.
$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,test,docs]'
	touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror src/grit/kernels/cpp/*
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/package_graph.py --check
	$(MAKE) docs

# The site, in site/. Strict: a broken link or an unknown name is an error. Needs no network.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

test: lint
	$(BIN)/pytest -n 2

# Minutes of damaged and hostile inputs; it prints its seed, and how to repeat an input that failed.
fuzz: setup
	$(BIN)/python -m tests.fuzz --inputs 20000

# Do the tests notice small deliberate mistakes? 200 of them; goes on where it was interrupted. Other options by MUTANTS='...'.
mutants: setup
	$(BIN)/python scripts/mutants $(MUTANTS)

demo: setup
	$(BIN)/grit demo

bench: setup
	for f in benchmarks/*.py; do echo "== $$f"; $(BIN)/python $$f || exit 1; done

# A wheel and a source archive, in dist/.
wheel: setup
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt build
	$(BIN)/python -m build

clean:
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .hypothesis .mutants
