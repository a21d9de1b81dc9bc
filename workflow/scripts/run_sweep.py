"""Run a sweep: planned and checked before its first job, with progress, and only what is not finished.

By hand:
    python workflow/scripts/run_sweep.py workflow/sweep.yaml [more.yaml ...] [--cores 2] [-- snakemake options]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import one_sentence
from progress import OVERHEAD, Job, Progress, duration
from run import ROOT, Run, check_data, check_room, split

from dpsub import lock
from dpsub.errors import PlanError
from dpsub.sweeps import by_cell
from dpsub.sweeps.planning import SweepPlan, load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", type=Path, nargs="+", help="YAML files, later ones over earlier ones")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="jobs at a time (%(default)s)")
    own, _, extra = split(sys.argv[1:])
    options = parser.parse_args(own)
    if options.cores < 1:
        raise PlanError(f"cores must be at least 1, got cores = {options.cores}")
    config = load(options.sweep)
    with lock.hold(Path(config["results_dir"])) as descriptor:
        plan = SweepPlan(config)
        check_room(plan.results)
        check_data(plan)
        plan.write()
        run = SweepRun(plan, options.cores, descriptor)
        if not plan.bundles and all(by_cell.is_current(plan.results, name) for name in plan.experiments):
            print("\n".join(run.summary(0, 0.0)))
            return
        sys.exit(run.go(extra))


class SweepProgress(Progress):
    """Progress in which every job has the length that the plan expects of it."""

    def __init__(self, plan: SweepPlan, cores: int) -> None:
        super().__init__({}, cores)
        self.seconds = {bundle.part(plan.seed): bundle.seconds for bundle in plan.bundles}

    def cost(self, job: Job) -> float:
        return self.seconds.get(job.wildcards.get("part", ""), OVERHEAD)

    def _begin(self) -> None:
        self.total = self.counts.pop("total", 0)
        others = sum(count for rule, count in self.counts.items() if rule != "run_bundle")
        self.expected = sum(self.seconds.values()) + OVERHEAD * others


class SweepRun(Run):
    """One call of Snakemake on the jobs of a sweep's plan."""

    snakefile = ROOT / "workflow/sweep.smk"

    def __init__(self, plan: SweepPlan, cores: int, descriptor: int) -> None:
        super().__init__(plan, [plan.manifest_file], cores, descriptor)
        room = int(max([plan.memory_limit, *(bundle.memory for bundle in plan.bundles)]))
        self.command += ["--resources", f"mem_mb={room}"]  # no more jobs at a time than this machine has memory for

    def progress(self) -> Progress:
        totals = self.plan.totals(self.cores)
        if self.plan.bundles:
            print(
                f"{totals['records_to_compute']} records of {totals['cells'] - totals['cells_finished']} cells "
                f"to compute in {totals['jobs']} jobs, about {duration(3600 * totals['hours'])} on {self.cores} cores; "
                f"{totals['cells_finished']} cells are finished",
                flush=True,
            )
        return SweepProgress(self.plan, self.cores)

    def summary(self, made: int, seconds: float) -> list[str]:
        files = [str(by_cell.summary_file(self.plan.results, name)) for name in self.plan.experiments]
        first = f"finished {made} jobs in {duration(seconds)}" if made else "nothing to do: every cell is finished"
        return [first, f"records: {self.plan.results / 'records'}", f"one row a cell: {', '.join(files)}"]


if __name__ == "__main__":
    one_sentence.run(main)
