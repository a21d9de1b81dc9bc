"""Plan a sweep, and hand what is not finished to Snakemake.

python workflow/scripts/run_sweep.py mine.yaml [more.yaml ...] [-- snakemake options]
"""

import os
import sys
from pathlib import Path

try:
    from dpsub.errors import DpsubError
    from dpsub.reproduce.sweep import SweepPlan, load
except ModuleNotFoundError as missing:
    sys.exit(
        f"error: {missing.name} must be installed in the Python that plans a sweep, got "
        f"{sys.executable}; run `make environment`, and use .venv/bin/python"
    )

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = ("--executor", "-e", "--profile", "--workflow-profile")
PROFILES = ("SNAKEMAKE_PROFILE", "SNAKEMAKE_WORKFLOW_PROFILE")


def main(arguments: list[str]) -> None:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    try:
        plan = SweepPlan(load(map(Path, arguments[:at])))
        plan.write()
    except DpsubError as problem:
        sys.exit(f"error: {problem}")
    totals = plan.totals(len(os.sched_getaffinity(0)))
    print(
        f"{totals['cells']} cells, {totals['cells_finished']} of them finished; "
        f"{totals['records_to_compute']} records "
        f"to compute in {totals['jobs']} jobs, about {totals['core_hours']:.2g} core-hours",
        flush=True,
    )
    # no more jobs at a time than this machine has memory for; what a cluster gives to a job is not
    # counted here
    room = int(max([plan.memory_limit, *(job.memory for job in plan.jobs.values())]))
    options = {argument.partition("=")[0] for argument in arguments[at + 1 :]}
    elsewhere = options.intersection(ELSEWHERE) or any(map(os.environ.get, PROFILES))
    limit = [] if elsewhere else ["--resources", f"mem_mb={room}"]
    os.execv(
        sys.executable,
        [
            sys.executable,
            "-m",
            "snakemake",
            "--snakefile",
            str(ROOT / "workflow/sweep.smk"),
            "--configfile",
            str(plan.manifest_file),
            *limit,
            *arguments[at + 1 :],
        ],
    )


if __name__ == "__main__":
    main(sys.argv[1:])
