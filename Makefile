# Thin: the environment, then one command each. `make PYTHON=python3.12 CORES=4 reproduce` sets what is used, and
# `make PROFILE=slurm PARTITION=main ACCOUNT=mine reproduce` runs the jobs on a cluster (docs/cluster.md).
PYTHON ?= python3
VENV ?= .venv
CORES ?=
PROFILE ?=
PARTITION ?=
ACCOUNT ?=
BIN := $(VENV)/bin
MACHINE := $(if $(CORES),--cores $(CORES)) $(if $(PROFILE),--profile $(PROFILE)) \
           $(if $(PARTITION),--partition $(PARTITION)) $(if $(ACCOUNT),--account $(ACCOUNT))
RUN := $(BIN)/python workflow/scripts/run.py $(MACHINE)
SWEEP ?= workflow/sweep.yaml

.PHONY: reproduce smoke sweep test test-slow bench lint docs schema environment clean

reproduce: environment  ## every table and figure at published size, into results/
	@$(RUN)

reproduce-%: environment  ## one paper at full size, as its full.yaml says: reproduce-importance, into results-importance/
	@$(RUN) --config src/dpsub/papers/$*/full.yaml

smoke: environment  ## the same chain at its smallest, into results-smoke/
	@$(RUN) --config workflow/smoke.yaml

sweep: environment  ## the cells of $(SWEEP) that are not finished, into its own results folder
	@$(BIN)/python workflow/scripts/run_sweep.py $(SWEEP) $(MACHINE)

test: environment  ## the tests
	@$(BIN)/python -m pytest -q -n auto

test-slow: environment  ## what takes minutes or the network: oldest and newest dependencies, wheel, links, fresh seeds, long series
	@$(BIN)/python -m pytest -q -m slow

bench: environment  ## what is fast, as ratios
	@$(BIN)/python benchmarks/run.py

lint: environment  ## style, types, spelling
	@$(BIN)/ruff check . && $(BIN)/mypy && $(BIN)/snakefmt --check Snakefile workflow && $(BIN)/codespell

docs: environment  ## the documentation as a site, into site/; a warning is an error
	@$(BIN)/python -m sphinx -q -W --keep-going -b html -d site/.doctrees docs site/html
	@echo "read site/html/index.html"

schema: environment  ## what a configuration may hold, for editors, into config.schema.json
	@$(BIN)/python -m dpsub.reproduce.configuration > config.schema.json

environment:
	@$(PYTHON) workflow/scripts/make_environment.py $(VENV)

clean:  ## what runs have made; the environment, downloads and sweeps stay
	rm -rf results results-smoke results-importance data/interim .snakemake site docs/api
