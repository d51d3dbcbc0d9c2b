# The targets of the project; `make help` lists them. Everything runs from .venv, which is built from requirements.lock.

SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Only the lab needs root; what it runs must not leave files of root in the checkout.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo PYTHONDONTWRITEBYTECODE=1)
LAB := inventory/lab.yaml

.PHONY: help demo demo-stop test unit check format bench lock wheel clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

demo: $(READY) ## two virtual Sparks, linked, proven, serving a real model; then one question
	$(SUDO) $(BIN)/sparkctl lab up --engine
	$(BIN)/sparkctl up -i $(LAB) --yes
	@echo
	@echo 'Ask more:  $(BIN)/sparkctl ask -i $(LAB) "What is a network cable?"'
	@echo 'Stop:      make demo-stop'

demo-stop: $(READY) ## stop the virtual Sparks and remove them; caches stay
	$(SUDO) $(BIN)/sparkctl lab down

test: $(READY) ## every test that needs no real Spark, the lab included
	$(SUDO) $(BIN)/python -m pytest -p no:cacheprovider -m "not spark"

unit: $(READY) ## the tests that need nothing; seconds
	$(BIN)/python -m pytest

check: $(READY) ## formatting, lint, types, import contracts, playbooks
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/yamllint --strict .
	cd playbooks && ../$(BIN)/ansible-lint --offline

format: $(READY) ## let ruff format and mend what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) ## benchmarks, side by side, as ratios; those on the lab need `make demo` first
	$(BIN)/python -m benchmarks.startup
	$(BIN)/python -m benchmarks.facts $(LAB)
	$(BIN)/python -m benchmarks.link_noop $(LAB)
	$(BIN)/python -m benchmarks.serve $(LAB)

lock: ## write requirements.lock anew from pyproject.toml
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' --quiet -o requirements.lock

wheel: $(READY) ## build the wheel into dist/
	$(BIN)/python -m build --wheel --no-isolation --outdir dist

clean: ## remove what make made here; the lab's caches are `sparkctl lab down --purge`
	rm -rf $(VENV) dist build .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

$(READY): requirements.lock pyproject.toml
	scripts/make-venv $(VENV)
	touch $@
