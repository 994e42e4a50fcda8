# Every target sets up what it needs, from nothing but Python 3.11 or newer.
#   make eval ARGS="--dataset DIR --split cross_domain --grounding choice"
PYTHON ?= python3
ARGS ?=
# What `make eval` installs besides the core: make eval EXTRAS=hf ARGS="--model hf/DIR"
EXTRAS ?=
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
SETUP_FILES := pyproject.toml constraints.txt

.PHONY: eval test quick nightly check format docs notebooks pictures wheel clean
.DEFAULT_GOAL := eval

# Each of a hundred commands that tests start would otherwise compile the package anew
test quick nightly: export PYTHONDONTWRITEBYTECODE :=

eval: $(VENV)/.installed$(addprefix -,$(EXTRAS))
	@$(BIN)/python scripts/eval.py $(ARGS)

# A file's tests run in one process; four share two cores, as many tests wait for servers and browsers. One for all: make test ARGS="-n 0"
test: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest -q -rs -n 4 --dist loadfile --no-loadscope-reorder $(ARGS)

# `make test` but for the tests marked as slow
quick: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest -q -n 4 --dist loadfile --no-loadscope-reorder -m "not slow and not nightly" $(ARGS)

# All tests, those marked as nightly too, with all random cases: hours
nightly: export NIGHTLY := 1
nightly: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest -q -rs -n 4 --dist loadfile --no-loadscope-reorder -m "" $(ARGS)

check: $(VENV)/.installed-dev
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy

format: $(VENV)/.installed-dev
	$(BIN)/python -m ruff format .
	$(BIN)/python -m ruff check --fix .

# The documentation site, into build/site
docs: $(VENV)/.installed-dev
	@echo "building the documentation into build/site: some seconds"
	@$(BIN)/zensical build --strict $(ARGS)

# Runs the notebooks and writes their outputs into them
notebooks: $(VENV)/.installed-notebooks
	@$(BIN)/python -m tests.notebooks

# Makes the pictures of the viewer in docs/images anew, in Chromium
pictures: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.pictures

wheel: $(VENV)/.installed-dev
	$(BIN)/python -m build

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

# An interrupted set-up leaves no stamp, so the next call finishes it.
define make_venv
$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
  $(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("PYTHON=$(PYTHON) is %d.%d, expected 3.11 or newer: try make PYTHON=python3.11" % sys.version_info[:2])' \
  && $(PYTHON) -m venv $(VENV); }
endef

$(VENV)/.installed: $(SETUP_FILES)
	@$(make_venv)
	@echo "Installing seeact-offline and what it runs on into $(VENV), once: some minutes" >&2
	@$(PIP_INSTALL) -e .
	@touch $@

$(VENV)/.installed-%: $(SETUP_FILES)
	@$(make_venv)
	@echo "Installing seeact-offline and what $* needs into $(VENV), once: some minutes" >&2
	@$(PIP_INSTALL) -e '.[$*]'
	@touch $(VENV)/.installed $@
