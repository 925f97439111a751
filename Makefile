# Needs make and Python 3.11 or newer, nothing else. Another Python: make lab PYTHON=python3.12
PYTHON ?= python3
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)

.PHONY: help env lab test test-slow test-install check build bench lock

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' $(MAKEFILE_LIST)

env:  ## create .venv from requirements.lock, or do nothing if it is up to date
	@$(PYTHON) tools/env.py

lab: env  ## open the course in JupyterLab; options for it: make lab ARGS="--port 9000"
	@$(BIN)/lightspeed lab $(ARGS)

# nbval runs the notebooks in the same command; the cells of one notebook must stay in one process.
test: env  ## prove the course in minutes; a part of it: make test ARGS=tests/laws
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not install" $(ARGS)

test-slow: env  ## the rest of the proof: a real JupyterLab in a real Chromium, damaged copies, hostile notebooks
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m slow $(ARGS)

test-install: env  ## whatever installs: the lock by uv and by pip, nbgrader, a Dask cluster
	@$(BIN)/python -m pytest -m install tests/install tests/classroom/test_cluster.py

check: env  ## fail if a derived file is not what its source makes
	@$(BIN)/lightspeed check $(ARGS)

build: env  ## execute the chapters and derive the exercises
	@$(BIN)/lightspeed build $(ARGS)

bench: env  ## measure speed, each as a ratio against something run beside it; half an hour on a quiet machine
	@missed=; for script in $(filter-out benchmarks/_% benchmarks/record_%,$(wildcard benchmarks/*.py)); do \
		$(BIN)/python $$script || missed="$$missed $$script"; done; \
	test -z "$$missed" || { echo "outside their limits:$$missed"; exit 1; }

lock:  ## after make env: resolve requirements.lock again; newer versions: make lock ARGS=--upgrade
	@$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --no-header \
		--extra dev --extra measure --fork-strategy fewest $(ARGS) pyproject.toml -o requirements.lock
