# setup       .venv with what the tests need
# quickstart  tune a real kernel on this machine in under two minutes
# train-example  a PyTorch script as it is, tuned, and with what was found, in about three minutes
# test        ruff, mypy and pytest
# test-long   what takes seconds a test: whole searches, some of them killed, and what searches find
# test-torch  the tests that need PyTorch, Triton or CUDA's compiler, which it installs; no GPU is needed
# test-docs   every command and every block of Python that the documentation shows
# test-slow   the long checks: twenty kills, long fuzzing
# clean       remove what these made

PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup setup-torch quickstart train-example test test-long test-torch test-docs test-slow clean

setup: .venv/ready

# To compile all that is installed takes as long as to install it, and a third of it is ever loaded. Our own
# is compiled at once: commands start a tenth sooner.
.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "autotune needs Python 3.11 or newer: make PYTHON=python3.11 setup"; exit 1; }
	$(PYTHON) -m venv .venv || { echo "no venv module: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable '.[dev]'
	$(BIN)/python -m compileall -q autotune
	@touch $@

# Some hundred megabytes; where the index has it with CUDA, as PyPI does, some thousand.
setup-torch: .venv/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch==2.13.0 --editable '.[dev,triton,cuda]'

quickstart: setup
	$(BIN)/autotune search gemm-c

train-example: export PATH := $(CURDIR)/$(BIN):$(PATH)
train-example: setup-torch
	python examples/train_digits.py
	autotune search examples/train-digits.yaml
	python examples/train_digits.py

# Collecting the tests compiles them and what they import, which both processes of the last line would do. It
# is done beside mypy, which takes one core. What it has to say against a test, the last line says too.
test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pytest --collect-only > /dev/null 2>&1 & $(BIN)/mypy; found=$$?; wait; exit $$found
	$(BIN)/pytest -n 2 --dist worksteal

test-long: setup
	$(BIN)/pytest -n 2 --dist worksteal -m 'long and not slow'

test-torch: setup-torch
	$(BIN)/pytest -m 'torch and not slow'

test-docs: setup
	$(BIN)/pytest -n 2 --dist worksteal -m slow tests/docs

test-slow: setup
	$(BIN)/pytest -m slow

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
