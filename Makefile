# make demo   trains, judges and proposes a checkpoint on this machine
# make test   lint, types and every test
# The first call builds .venv with the exact packages of constraints.txt; later calls reuse it.

PYTHON ?= python3
VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
# Stages run as `python -m components ...`: the environment's Python must come first.
export PATH := $(BIN):$(PATH)
# Workers of pytest: the tests are written for two cores.
JOBS ?= 2

.PHONY: demo test lint bench doctor clean

demo: $(VENV)/.installed
	evenkeel run --config configs/demo.yaml

test: lint
	OMP_NUM_THREADS=1 pytest -n $(JOBS) --dist loadgroup

lint: $(VENV)/.installed
	ruff check .
	ruff format --check .
	mypy

bench: $(VENV)/.installed
	pytest tests/benchmarks -s

doctor: $(VENV)/.installed
	evenkeel doctor

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) runs out .state build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
