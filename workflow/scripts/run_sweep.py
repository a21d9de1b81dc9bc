"""Plan a sweep, and hand what is not finished to Snakemake.

python workflow/scripts/run_sweep.py mine.yaml [more.yaml ...] [-- snakemake options]
"""

import os
import sys
from pathlib import Path

from dpsub.errors import DpsubError
from dpsub.reproduce.sweep import SweepPlan, load

ROOT = Path(__file__).resolve().parents[2]


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
    elsewhere = {"--executor", "--profile", "--workflow-profile"}.intersection(arguments)
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
