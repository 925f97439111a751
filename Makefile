# Needs make and Python 3.11 or newer, nothing else. Another Python: make lab PYTHON=python3.12
PYTHON ?= python3
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)

# Containers often forbid Python to keep what it compiled. Here a hundred kernels and sandboxes
# would then compile the same modules again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help env dev lab test test-slow test-install check build site book serve bench lock

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' $(MAKEFILE_LIST)

env:  ## create .venv with what a learner or an instructor uses, or do nothing if it is up to date
	@$(PYTHON) tools/env.py

dev:  ## the same with what proves and builds the course
	@$(PYTHON) tools/env.py dev

lab: env  ## open the course in JupyterLab; options for it: make lab ARGS="--port 9000"
	@$(BIN)/lightspeed lab $(ARGS)

# nbval runs the notebooks in the same command; the cells of one notebook must stay in one process.
# Two workers on two cores: threads of numpy's matrix products would only wait for each other.
test: export OPENBLAS_NUM_THREADS := 1
test: dev  ## prove the course in minutes; a part of it: make test ARGS=tests/laws
	@$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not install" $(ARGS)

test-slow: dev  ## the rest of the proof: a real JupyterLab in a real Chromium, damaged copies, hostile notebooks
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m slow $(ARGS)

test-install: dev  ## whatever installs: the lock by uv and by pip, a Dask cluster
	@$(BIN)/python -m pytest -m install tests/install tests/classroom/test_cluster.py tests/classroom/test_similarity.py

check: dev  ## fail if `lightspeed check` finds a fault; the sources alone, in seconds: make check ARGS=--fast
	@$(BIN)/lightspeed check $(ARGS)

build: dev  ## execute the chapters and derive the exercises
	@$(BIN)/lightspeed build $(ARGS)

site: dev  ## build the web edition into site/; needs Node.js for Python in the browser, from npm
	@$(BIN)/lightspeed site $(ARGS)

book: dev  ## print lessons and exercises as speed-of-light.pdf; needs Node.js and Chromium
	@$(BIN)/lightspeed site --book speed-of-light.pdf

serve:  ## serve site/ on this machine
	@$(BIN)/lightspeed site --serve $(ARGS)

bench: dev  ## measure speed, each as a ratio against something run beside it; half an hour on a quiet machine
	@missed=; for script in $(filter-out benchmarks/_% benchmarks/record_%,$(wildcard benchmarks/*.py)); do \
		$(BIN)/python $$script || missed="$$missed $$script"; done; \
	test -z "$$missed" || { echo "outside their limits:$$missed"; exit 1; }

lock:  ## after make dev: resolve both lock files again; newer versions: make lock ARGS=--upgrade
	@$(LOCK) --extra dev $(ARGS) pyproject.toml -o requirements-dev.lock
	@echo hatchling | $(LOCK) --extra measure --constraint requirements-dev.lock pyproject.toml - -o requirements.lock

LOCK = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-annotate --no-header \
	--fork-strategy fewest --constraint tools/constraints.txt
