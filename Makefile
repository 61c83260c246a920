# Two commands do everything: `make app` and `make test`. Both set up .venv first; neither needs a key or a model hub.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PORT   ?= 8501
MODEL  ?= qwen2.5-coder-1.5b
WORKERS ?= 3
unexport PYTHONDONTWRITEBYTECODE # without compiled files every process that a test starts compiles ragqa anew
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: app serve local test quick check format reference indexes benchmark growth clean help \
  prove-fuzz prove-kills prove-visitors prove-soak prove-growth prove-dump prove-repass prove-hostile

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "ragqa needs Python 3.11 or newer, found " + sys.version.split()[0] + "; run make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.app: $(BIN)/python pyproject.toml constraints.txt
	@echo "Installing ragqa (once, a few minutes)…"
	$(PIP) install --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	@echo "Installing ragqa and its test tools (once, a few minutes)…"
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $(VENV)/.app $@

app: $(VENV)/.app ## open the page at http://localhost:8501
	$(BIN)/streamlit run app.py --server.port $(PORT)

ADDRESS ?= localhost
NAMES    = $(filter-out 0.0.0.0 ::,$(HOSTS) $(ADDRESS)) localhost
serve: $(VENV)/.app ## the same for others (ADDRESS=0.0.0.0 HOSTS="ragqa.example.org", the names that the page is opened by)
	$(BIN)/streamlit run app.py --server.port $(PORT) --server.address $(ADDRESS) \
	  --browser.serverAddress $(firstword $(NAMES)) $(addprefix --server.allowedHosts ,$(NAMES) 127.0.0.1 ::1)

PYTEST := -m pytest -n $(WORKERS) --dist worksteal

test: $(VENV)/.dev ## run the tests this machine can run in a quarter of an hour, with coverage (SLOW=1 adds those that take longer)
	$(BIN)/python -m slipcover --json --out .coverage.json $(PYTEST) $(if $(SLOW),,-m "not slow")
	@$(BIN)/python -m slipcover --merge .coverage.json --out .coverage.json --skip-covered --fail-under 90

# What is left out whole, besides the marks, imports torch or streamlit before its first test, or runs whole commands.
LEFT_OUT := $(addprefix --ignore=tests/,lab models/inference cli test_extend.py) $(addprefix --ignore-glob=tests/,\
  ui/test_app*.py ui/test_browser*.py generation/test_transformers_serve.py scoring/repass/test_nli.py \
  retrieval/test_late_interaction.py retrieval/test_learned_ranker.py retrieval/test_api_*.py retrieval/test_splade.py \
  retrieval/test_retriever_contract.py evaluation/*/test_*command.py evaluation/*/test_*run.py)

quick: $(VENV)/.dev ## run the tests without browser, models, data and commands, in less than a minute
	$(BIN)/python -m pytest -n 2 --dist worksteal $(LEFT_OUT) --hypothesis-profile quick -m "not slow and not long and not browser and not model and not data"

check: $(VENV)/.dev ## lint and type-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev ## format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/.local: $(VENV)/.app
	@echo "Installing the library that runs language models…"
	$(PIP) install --constraint constraints.txt --editable '.[local]'
	@touch $@

local: $(VENV)/.local ## a language model that answers on this machine, 1.1 GB (make local MODEL=smollm2-135m: 0.1 GB)
	$(BIN)/ragqa models fetch $(MODEL)

indexes: $(VENV)/.app ## rebuild the two demonstration indexes
	$(BIN)/ragqa index build rulebook --source ragqa/corpus/demo/rulebook --format obliqa --precision fp32
	$(BIN)/ragqa index build encyclopedia --source ragqa/corpus/demo/encyclopedia/articles --format text --precision fp32

reference: $(VENV)/.dev ## write ragqa/REFERENCE.md again: parts, environment variables, commands
	$(BIN)/python -m ragqa.cli.reference

benchmark: $(VENV)/.dev ## time RePASs against the reference script's loop (make benchmark OPTIONS="--cases 3")
	$(BIN)/python -m tests.benchmarks.repass $(OPTIONS)

growth: $(VENV)/.dev ## measure indexes of up to 1.3 million passages (make growth OPTIONS="--index adgm --sizes 13000")
	$(BIN)/python -m tests.benchmarks.growth $(OPTIONS)

prove-kills: $(VENV)/.dev ## kill -9 at many moments: indexes, uploads, questions, records, runs, trainings (half an hour)
	$(BIN)/python $(PYTEST) -m slow -k "kill or crash or interrupt or cut_off" $(OPTIONS)

prove-visitors: $(VENV)/.dev ## 50 visitors at one server, five questions each, by the page's own protocol
	$(BIN)/python -m tests.benchmarks.visitors $(OPTIONS)

prove-soak: $(VENV)/.dev ## eight sessions of the page at once, then 200 questions in one (OPTIONS="--questions 50")
	$(BIN)/python -m tests.benchmarks.soak $(OPTIONS)

$(VENV)/.fuzz: $(VENV)/.dev
	$(PIP) install --constraint constraints.txt --editable '.[fuzz]'
	@touch $@

prove-fuzz: $(VENV)/.fuzz ## 10,000 inputs that nobody should have to survive, half of them guided by what they reach
	$(BIN)/python -m tests.benchmarks.fuzz $(OPTIONS)

prove-growth: growth ## the same as growth

prove-dump: $(VENV)/.dev ## index a synthetic Wikipedia dump in bounded memory, killed on the way (OPTIONS="--megabytes 1000")
	$(BIN)/python -m tests.benchmarks.dump $(OPTIONS)

prove-repass: $(VENV)/.dev ## every number of RePASs against the reference script's loop, on all cases
	$(BIN)/python -m pytest -m "slow or not slow" tests/scoring/repass/test_repass_reference.py \
	  tests/scoring/repass/test_repass_model.py $(OPTIONS)

prove-hostile: $(VENV)/.dev ## ask all 200 hostile questions in a browser and in the terminal
	RAGQA_HOSTILE=1 $(BIN)/python -m pytest --timeout 3600 -k hostile tests/ui/test_browser.py tests/cli $(OPTIONS)

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
