"""The plan of a run, from its configuration: see dpsub.reproduce.planned."""

import hashlib
import json
import subprocess

from dpsub.errors import DpsubError
from dpsub.files import replace_file


def plan_file():
    """Return where the plan is kept: one file for each configuration and state of the sources."""
    total = hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode())
    for path in sorted([*SOURCE.rglob("*.*"), ROOT / "workflow/envs/dpsub.yaml"]):
        if path.suffix != ".pyc":
            state = path.stat()
            total.update(f"{path}\0{state.st_mtime_ns}\0{state.st_size}\0".encode())
    return Path(".snakemake/dpsub") / f"plan-{total.hexdigest()[:16]}.json"


def plan_of_run():
    """Return the plan; jobs read what the run has written."""
    kept = plan_file()
    if kept.exists() and not workflow.is_main_process:
        return json.loads(kept.read_text(encoding="utf-8"))
    try:
        from dpsub.reproduce.planned import planned

        plan = planned(config, ROOT)
    except ModuleNotFoundError as lacking:
        if lacking.name.partition(".")[0] == "dpsub":
            raise
        return plan_from_job(kept, lacking.name)
    except DpsubError as problem:
        raise WorkflowError(str(problem)) from None
    kept.parent.mkdir(parents=True, exist_ok=True)
    replace_file(kept, json.dumps(plan).encode())
    return plan


def plan_from_job(kept, lacking):
    """Return the plan that a job makes, where Snakemake's own environment has not all that dpsub
    needs."""
    deployment = workflow.deployment_settings
    if not deployment.deployment_method:
        raise WorkflowError(
            f"the packages that dpsub needs must be installed where snakemake is, got no {lacking}; "
            f"add `--sdm conda`, which makes an environment, or run: {INSTALL}"
        )
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        asked = kept.with_suffix(".config.json")
        replace_file(asked, json.dumps({"config": config, "plan": str(kept)}).encode())
        prefix = deployment.conda_prefix
        command = [
            *(PYTHON, "-m", "snakemake", "--snakefile", str(ROOT / "workflow/plan.smk")),
            *("--configfile", str(asked), "--cores", "1", "--nolock", "--quiet", "all"),
            *("--profile", "none", "--workflow-profile", "none", "--software-deployment-method"),
            *(method.item_to_choice() for method in deployment.deployment_method),
            *(("--conda-prefix", str(prefix)) if prefix else ()),
        ]
        print("making the environment of jobs, if there is none, and the plan", file=sys.stderr)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if not kept.exists():
            said = failures(kept.with_suffix(""), 0).splitlines()
            sentences = [line.removeprefix("error: ") for line in said if line[:7] == "error: "]
            raise WorkflowError(sentences[0] if sentences else done.stdout)
    return json.loads(kept.read_text(encoding="utf-8"))


PLAN = plan_of_run()
CONFIG, ARTEFACTS, EXPERIMENTS = PLAN["config"], PLAN["artefacts"], PLAN["experiments"]
RESULTS = PLAN["results"]
DATA = {name: data_set["file"] for name, data_set in PLAN["data"].items()}
DATA_CODE = {name: data_set["code"] for name, data_set in PLAN["data"].items()}
DATA_CHOICES = CONFIG["data"]
TIMED = [name for name, experiment in EXPERIMENTS.items() if experiment["timed"]]
UNTIMED = [name for name in EXPERIMENTS if name not in TIMED]


def everything():
    return [
        *files_of_artefacts(),
        *records_of(EXPERIMENTS),
        rules.check_verdicts.output,
        rules.write_report.output,
    ]


def files_of_artefacts():
    return [path for made in ARTEFACTS.values() for path in made["files"].values()]


def records_of(names):
    """Return the record files of experiments."""
    return [path for name in names for path in EXPERIMENTS[name]["records"]]


def refused(name):
    """Stop with the sentence that says what an ambiguous name could be."""
    # Snakemake prints a traceback below any error of an input function but this one.
    raise SystemExit(PLAN["ambiguous"][name])


def part_of(wildcards):
    """Return the replicates of one job, first and stop; an error if it is not in the plan."""
    part = EXPERIMENTS[wildcards.experiment]["parts"].get(wildcards.part)
    if part is None:
        raise WorkflowError(
            f"the plan has no part {wildcards.part} of {wildcards.experiment}; choose one of its parts"
        )
    return part


def digests_of(names):
    return {name: EXPERIMENTS[name]["config_digest"] for name in names}


def of_kind(figure, timed):
    """Return the artefacts of one kind; tables of results and of clock times may share a name."""
    return {
        name: made
        for name, made in ARTEFACTS.items()
        if (made["figure"], made["timed"]) == (figure, timed)
    }


def pattern(kind, timed, role):
    """Return the path of one file of artefacts of a kind; the wildcard stands for paper and name."""
    for made in of_kind(kind == "figure", timed).values():
        path = Path(made["files"][role])
        return str(path.parent.parent / f"{{artefact}}{path.suffix}")
    return f"{RESULTS}/{kind}-{timed}/{{artefact}}.{role}"  # no such artefact in this plan


def names(kind, timed=False):
    return one_of(of_kind(kind == "figure", timed))


def listed(path, category):
    """Register a file for Snakemake's own report."""
    labels = {"artefact": "{artefact}", "format": Path(path).suffix[1:]}
    return report(path, caption="../report/artefact.rst", category=category, labels=labels)


def category_of(made):
    """Return where an artefact stands in Snakemake's own report."""
    if made["timed"]:
        return "Clock times"
    return "Figures" if made["figure"] else "Tables"


def summary():
    """Return what a finished run has made."""
    try:
        from dpsub.reproduce import configuration, outcome
        from dpsub.reproduce.plan import Plan
    except ModuleNotFoundError:
        return f"made {RESULTS}; read {RESULTS}/report/index.html"
    plan = Plan(configuration.validate(config))
    return outcome.summary(plan, workflow.dag_settings.targets)
