"""What stands behind the rules; nobody need read it to know what runs what.

First, where the package is, also for a workflow that is hosted at a forge. Then the strict reading of the configuration, and
the plan of the run, also where Snakemake's own environment lacks what dpsub needs. Last, short functions that rules call.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

# ---------------------------------------------------------------- where the files of this project are


def cloned(source):
    """Clone the repository of a hosted file at its revision into Snakemake's own folder.

    Snakemake fetches hosted rules and scripts one by one, but jobs need the package, too.
    """
    import git  # which Snakemake itself needs

    if hasattr(source, "hosted_repo"):
        source.fetch_if_required()
        kept = source.hosted_repo.repo  # Snakemake's own copy
    else:
        kept = git.Repo(source.repo_path)
    commit = kept.git.rev_parse(f"{source.ref}^{{commit}}")
    clone = Path.cwd() / ".snakemake/dpsub" / commit[:12]
    if not clone.is_dir():
        clone.parent.mkdir(parents=True, exist_ok=True)
        unfinished = clone.with_name(f"{clone.name}.{os.getpid()}")
        made = git.Repo.clone_from(kept.git_dir, unfinished, no_checkout=True)
        made.git.checkout("--detach", commit)
        try:
            unfinished.rename(clone)
        except OSError:  # another process was faster
            shutil.rmtree(unfinished)
    return clone


STARTED = time.time()
HERE = workflow.current_basedir
ROOT = cloned(HERE) if hasattr(HERE, "ref") else Path(str(HERE)).parents[1]
SOURCE = ROOT / "src"
# from the clone, so that they and their scripts are files, wherever this page comes from
RULES = ROOT / "workflow/rules"
PYTHON = sys.executable
INSTALL = shlex.join([PYTHON, "-m", "pip", "install", "-e", f"{ROOT}[papers]"])
# Snakemake puts the interpreter into the commands of jobs as it is, also where its path has a space
sys.executable = shlex.quote(PYTHON)


def refuse(sentence):
    """Stop with one sentence; below an exception Snakemake would print lines of this file."""
    raise SystemExit(f"error: {sentence}")


if odd := sorted(set(str(ROOT)) & set("{}<>")):  # patterns to Snakemake
    refuse(f"the project must lie in a folder without {odd[0]} in its path, got {ROOT}; move it")
# rules and package are of one revision, whatever is installed
sys.path.insert(0, str(SOURCE))

from dpsub import threads
from dpsub.data import folders
from dpsub.errors import DpsubError
from dpsub.files import replace_file
from dpsub.reproduce import sums, yaml_files
from dpsub.reproduce.job import failures

os.environ.update(threads.ONE)  # jobs are what runs in parallel
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each job compiles the package again
# in an environment or a container of their own, jobs have this code, too
os.environ.update(
    PYTHONPATH=os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
)

# ------------------------------------------------------------------ the configuration and the plan


def default_configuration():
    """Return the path of config.yaml, after it and the user's own files are read strictly.

    Of a key that comes twice Snakemake would take the last, and of broken YAML it names no line.
    """
    default = ROOT / "config.yaml"
    # of a module, its user says what the configuration is
    if workflow.is_main_process and not workflow.modifier.skip_configfile:
        for path in map(Path, [*workflow.configfiles, default]):
            if path.suffix in (".yaml", ".yml") and path.exists():
                try:
                    yaml_files.read(path)
                except DpsubError as problem:
                    refuse(problem)
    return str(default)


def plan_file():
    """Return where the plan is kept: one file for each configuration and state of the sources."""
    total = hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode())
    for path in sorted([*SOURCE.rglob("*.*"), ROOT / "workflow/envs/dpsub.yaml"]):
        if path.suffix != ".pyc":
            state = path.stat()
            total.update(f"{path}\0{state.st_mtime_ns}\0{state.st_size}\0".encode())
    return Path(".snakemake/dpsub") / f"plan-{total.hexdigest()[:16]}.json"


def plan_of_run():
    """Return the plan, see dpsub.reproduce.planned; jobs read what the run has written."""
    kept = plan_file()
    before = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    if before and not workflow.is_main_process:
        return before
    try:
        from dpsub.reproduce import provenance

        plan = before | provenance.of_now(ROOT)
        # configuration and sources are in the file's name: the packages can have changed besides
        if plan["versions"] != before.get("versions"):
            from dpsub.reproduce.planned import planned

            plan = planned(config, ROOT)
    except ModuleNotFoundError as lacking:
        if lacking.name.partition(".")[0] == "dpsub":
            raise
        return plan_from_job(kept, lacking.name)
    except DpsubError as problem:
        refuse(problem)
    if plan != before:
        kept.parent.mkdir(parents=True, exist_ok=True)
        replace_file(kept, json.dumps(plan).encode())
    return plan


def plan_from_job(kept, lacking):
    """Return the plan that a job makes, where Snakemake's own environment has not all that dpsub
    needs."""
    deployment = workflow.deployment_settings
    if not deployment.deployment_method:
        refuse(
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
            refuse(sentences[0] if sentences else f"no plan was made\n{done.stdout}")
    return json.loads(kept.read_text(encoding="utf-8"))


def check_folders(folder):
    """Refuse a folder of raw data that does not exist, before anything runs."""
    if workflow.is_main_process:
        try:
            next(folders.of_user(folder), None)  # the first is the one that counts
        except DpsubError as problem:
            refuse(problem)


def check_results():
    """Refuse results that were changed by hand, which Snakemake would take for newer ones."""
    if workflow.is_main_process:
        try:
            sums.check(Path(RESULTS))
        except DpsubError as problem:
            refuse(problem)


# --------------------------------------------------- what the rules ask of the plan of the Snakefile


def of_stage(stage):
    """Return the experiments of a stage, by name."""
    return {name: made for name, made in EXPERIMENTS.items() if made["stage"] == stage}


def of_papers(figure):
    """Return the names of all figures, or of all tables and lists of claims, by paper."""
    found = {}
    for name, made in ARTEFACTS.items():
        if made["figure"] == figure:
            found.setdefault(made["paper"], []).append(name)
    return found


def reads(name):
    """Return the inputs of an experiment's jobs."""
    asked = EXPERIMENTS[name]
    return {
        "data": [DATA[data_set]["file"] for data_set in asked["data_sets"]],
        "records": records_of(asked["needs_records"]),
    }


def asked_of(name):
    """Return what a job of an experiment is told; a change of it makes the records again."""
    asked = EXPERIMENTS[name]
    return {
        "experiment": name,
        "seed": CONFIG["seed"],
        "replicates": lambda wildcards: part_of(name, wildcards.part),
        **{key: asked[key] for key in ("variants", "settings", "data_sets", "code")},
    }


def part_of(name, part):
    """Return the replicates of one job, first and stop; an error if it is not in the plan."""
    parts = EXPERIMENTS[name]["parts"]
    if part not in parts:
        refuse(f"the plan has no part {part} of {name}; choose one of its parts")
    return parts[part]


def runs_alone(name):
    """Whether an experiment measures clock times; at smoke size they mean nothing."""
    return EXPERIMENTS[name]["timed"] and CONFIG["size"] != "smoke"


def cores_of(name):
    """Return the threads of an experiment's jobs: all there are where nothing else may run."""
    return (workflow.cores or 1) if runs_alone(name) else 1


def node_of(name):
    """Return what an experiment's jobs ask of Slurm; other schedulers do not read it."""
    return {"slurm_extra": "--exclusive"} if runs_alone(name) else {}


def lift_limit():
    """Take Snakemake's limit of jobs per second from jobs of this machine, which its cores limit.

    For it the scheduler wakes each second, once for every job that has ended: after a hundred jobs
    that takes most of a core.
    """
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


def submitted_with(paper):
    """Return the group of jobs that a cluster gets in one submission: at smoke size those of a paper,
    which take less time than their submission."""
    return paper if CONFIG["size"] == "smoke" else None


def records_of(names):
    """Return the record files of experiments."""
    return [path for name in names for path in EXPERIMENTS[name]["records"]]


def digests_of(names):
    return {name: EXPERIMENTS[name]["config_digest"] for name in names}


def everything():
    return [
        *files_of_artefacts(),
        *records_of(EXPERIMENTS),
        rules.check_verdicts.output,
        rules.write_report.output,
        rules.describe_results.output,
    ]


def files_of_artefacts():
    return [path for made in ARTEFACTS.values() for path in made["files"].values()]


def sums_of_artefacts():
    """Return the files in which the jobs of artefacts note the sums of what they have written."""
    if CONFIG["size"] != "smoke":
        return [f"{RESULTS}/run/sums/{name}.json" for name in ARTEFACTS]
    kinds = {(made["paper"], made["figure"]) for made in ARTEFACTS.values()}
    return [
        f"{RESULTS}/run/sums/{'figures' if figure else 'tables'}_of_{paper}.json"
        for paper, figure in sorted(kinds)
    ]


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


# ----------------------------------------------------------- names, resources, and what a run says


def one_of(names):
    """Return the pattern of a wildcard that stands for one of `names`."""
    return "|".join(sorted(re.escape(name) for name in set(names))) or "(?!)"


def doubled(first, attempt):
    """Return the resource for an attempt, doubled with each one after the first."""
    return first * 2 ** (attempt - 1)


def listed(path, category):
    """Register a file for Snakemake's own report."""
    labels = {"artefact": "{artefact}", "format": Path(path).suffix[1:]}
    return report(path, caption="../report/artefact.rst", category=category, labels=labels)


def listed_together(names):
    """Return the files of artefacts but their comparisons; the report shows one of each artefact."""
    files = []
    for name in names:
        made = ARTEFACTS[name]
        shown_as = "png" if made["figure"] else "csv"
        for role, path in made["files"].items():
            if role == shown_as:
                labels = {"artefact": name, "format": role}
                files.append(report(path, category=category_of(made), labels=labels))
            elif role != "comparison":
                files.append(path)
    return files


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
