# make eval: score the zoo against its baselines.   make test: the project's own tests.
# Both need python3 (3.11 or newer, with venv) and make; everything else is installed into .venv on first use.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --progress-bar on -c constraints.txt

.PHONY: eval test lint recipes mutants clean

eval: $(VENV)/.eval-ready
	$(BIN)/python -m pytest evalsuite -n auto $(ARGS)

test: $(VENV)/.test-ready
	$(BIN)/python -m pytest tests -n auto $(ARGS)

lint: $(VENV)/.test-ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Trains every model of the zoo again, somewhat over an hour; electra and classifier start from bert.
recipes: $(VENV)/.eval-ready
	set -e; for recipe in bigram ngram nplm gru gpt llama word2vec phonemes_gru phonemes_transformer bert electra classifier; do $(BIN)/python models/recipes/$$recipe.py; done

# Plants small faults in the scoring and the statistics and counts how many the tests find: half an hour on two cores.
mutants: $(VENV)/.test-ready
	OMP_NUM_THREADS=1 $(BIN)/mutmut run --max-children 2
	$(BIN)/python benchmarks/mutation_score.py --survivors

$(VENV)/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo "make needs $(PYTHON); install Python 3.11 or newer, or set PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "evalsuite needs Python 3.11 or newer, found: $$($(PYTHON) --version). Set PYTHON=python3.12, say"; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) || \
	  { rm -rf $(VENV); echo "no virtual environment could be made: install the venv module (Debian: python3-venv)"; exit 1; }

# torch first, alone and by its exact version: the one large download shows its own progress, and where pip is set up
# to offer a CPU build of that version it is taken instead of gigabytes of GPU libraries.
$(VENV)/.eval-ready: pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing evalsuite into $(VENV) (torch is some 200 MB; the first time takes a few minutes)"
	$(PIP) "$$(grep '^torch==' constraints.txt)"
	$(PIP) -e .
	@touch $@

$(VENV)/.test-ready: $(VENV)/.eval-ready
	$(PIP) -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) eval-report mutants build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
