.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo test test-all test-long check docs fmt clean

python := .venv/bin/python

help:  ## list the verbs
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup:  ## make .venv with everything that a sweep on CPU needs
	@requirements/setup.sh

setup-dev:
	@requirements/setup.sh dev

demo: setup  ## set up, make a phantom cohort, sweep it with a small model on CPU, show the scores
	$(python) -m cardiolens.sweep +experiment=demo

# A file of tests runs in one process. There is one process more than processors, as tests wait for others. The
# files with the longest waits (browser, Ray, SLURM) come first.
pytest := $(python) -m pytest -n $(shell expr $$(nproc) + 1) --dist loadfile --no-loadscope-reorder

test: setup-dev  ## run the quick tests, three whole runs among them (10 minutes on two cores)
	@$(python) -m compileall -q cardiolens  # else each of the processes that tests start may compile it anew
	$(pytest) -m 'not full and not long and not gpu'

test-all: setup-dev  ## run what CI runs: everything but GPUs and test-long (30 minutes on two cores)
	@$(python) -m compileall -q cardiolens
	$(pytest) -m 'not long and not gpu'

test-long: setup-dev  ## run the rest: every fault, families of models, self-checks of benchmarks (hours)
	$(pytest) -m 'long and not gpu'

check: setup-dev  ## lint, formatting, types
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	$(python) -m mypy

docs: setup-dev  ## build the docs as a site in build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(python) -m mkdocs build --strict

fmt: setup-dev  ## format, and repair what the linter can
	$(python) -m ruff check --fix .
	$(python) -m ruff format .

clean:  ## remove the environment and what tools left; data, stores and outputs stay
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
