# Thin: the environment, then one command each. `make PYTHON=python3.12 CORES=4 reproduce` sets what is used, and
# `make PROFILE=slurm PARTITION=main ACCOUNT=mine reproduce` runs the jobs on a cluster (docs/cluster.md).
PYTHON ?= python3
VENV ?= .venv
CORES ?=
PROFILE ?=
PARTITION ?=
ACCOUNT ?=
BIN := $(VENV)/bin
SWEEP ?= src/dpsub/papers/fair/sweep.yaml
OWN_RUNS := $(patsubst src/dpsub/papers/%/full.yaml,results-%,$(wildcard src/dpsub/papers/*/full.yaml))
export PYTHONUTF8 := 1
# The project may lie in a folder with any letters in its name: setuptools and Python read lists of folders in those of
# the locale, whatever the UTF-8 mode.
ifneq ($(shell locale charmap 2>/dev/null),UTF-8)
export LC_ALL := C.UTF-8
endif
unexport PYTHONDONTWRITEBYTECODE
ON_SLURM := $(if $(PARTITION),--partition=$(PARTITION)) $(if $(ACCOUNT),--account=$(ACCOUNT))
OPTIONS := $(if $(CORES),--cores $(CORES)) $(if $(PROFILE),--workflow-profile workflow/profiles/$(PROFILE)) \
           $(if $(PARTITION)$(ACCOUNT),--default-resources \
             $(if $(PARTITION),slurm_partition=$(PARTITION)) $(if $(ACCOUNT),slurm_account=$(ACCOUNT)))

# One run of a target at a time, by a lock of the kernel, which ends with the run; Snakemake's own outlives a kill.
# Slurm says at once what is wrong with a partition or an account; of an account of groups of jobs its plugin says nothing.
define alone
@$(if $(PARTITION)$(ACCOUNT),sbatch --test-only $(ON_SLURM) --wrap=true)
@mkdir -p .snakemake; progress=$$(test -t 2 && echo --logger rich); \
flock --nonblock --conflict-exit-code 75 .snakemake/$@.lock $(1) --nolock $$progress $(OPTIONS) || { status=$$?; \
  test $$status -ne 75 || echo "error: only one \`make $@\` may run in a folder, and another one is running; wait for it" >&2; \
  exit $$status; }
endef

.PHONY: reproduce tournament map smoke sweep test test-rest test-all test-slow bench lint docs schema environment clean

reproduce: environment  ## every table and figure at published size, into results/
	$(call alone,$(BIN)/python -m snakemake)

reproduce-%: environment  ## one paper at full size, by its full.yaml: reproduce-importance, into results-importance/
	$(call alone,$(BIN)/python -m snakemake --configfile src/dpsub/papers/$*/full.yaml)

tournament: reproduce-tournament  ## samplers and schedules compared at equal proved privacy (up to 90 minutes on two cores)

map: reproduce-scheme_map  ## both bounds on the noise of every sampling scheme at five trainings (about 40 minutes of processor time)

smoke: environment  ## every step at the smallest sizes, into results-smoke/
	$(call alone,$(BIN)/python -m snakemake --configfile workflow/smoke.yaml)

sweep: environment  ## the unfinished cells of $(SWEEP), into its own results folder
	$(call alone,$(BIN)/python workflow/scripts/run_sweep.py $(SWEEP) --)

test: environment  ## the main tests
	@$(BIN)/python -m pytest -q -n auto

test-rest: environment  ## the remaining tests: cluster, browser, killed runs, all parameter values
	@$(BIN)/python -m pytest -q -n auto -m 'thorough and not slow'

test-all: test test-rest  ## both, as CI does

test-slow: environment  ## tests that take minutes, the network or one more small run: oldest and newest dependencies, wheel, links, fresh seeds, long series
	@$(BIN)/python -m pytest -q -m slow

bench: environment  ## benchmarks, as ratios of running times
	@$(BIN)/python benchmarks/run.py

lint: environment  ## check style, types and spelling
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/snakefmt --check Snakefile workflow && $(BIN)/codespell

docs: environment  ## the documentation as a site, into site/; a warning is an error
	@$(BIN)/python -m sphinx -q -W --keep-going -b html -d site/.doctrees docs site/html
	@echo "read site/html/index.html"

schema: environment  ## the schema of configuration files, for editors, into config.schema.json
	@$(BIN)/python -m dpsub.reproduce.configuration > config.schema.json

environment: $(VENV)/.complete

$(VENV)/.complete: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "error: Python 3.11 or later is needed, got " + \
	    sys.version.split()[0] + "; name one, as in make PYTHON=python3.12 reproduce")'
	@$(PYTHON) -c "$$CHECKED"
	@echo "installing what requirements.lock pins into $(VENV); this takes a minute or two"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip --disable-pip-version-check install -qq -r requirements.lock
	@$(BIN)/python -m pip --disable-pip-version-check install -qq --no-deps --no-build-isolation -e .
	@$(BIN)/python -c "$$RELATIVE"
	@touch $@

# The commands of an environment hold its path, which a shell reads, and patterns of Snakemake that of the project.
define CHECKED
import os, sys
odd = [letter for letter in os.getcwd() if letter in "\"$$`\\:{}<>\n"]
if odd:
    text = "error: the project must lie in a folder without %r in its path, got %r; move it"
    sys.exit(text % (odd[0], os.getcwd()))
endef
export CHECKED

# The package is found from its environment, by a path without the folders above, which Python could not read in every locale.
define RELATIVE
import os, pathlib, sysconfig
for listed in pathlib.Path(sysconfig.get_path("purelib")).glob("__editable__.dpsub-*.pth"):
    folder = listed.read_text(encoding="utf-8").strip()
    listed.write_text(os.path.relpath(folder, listed.parent) + "\n", encoding="utf-8")
endef
export RELATIVE

clean:  ## delete what runs have made; keep the environment, downloads and sweeps
	rm -rf $(filter-out results/README.md,$(wildcard results/*)) results-smoke $(OWN_RUNS) data/interim .snakemake site docs/api
