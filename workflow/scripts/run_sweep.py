"""Run a sweep: planned and checked before its first job, with progress, and only what is not finished.

By hand:
    python workflow/scripts/run_sweep.py workflow/sweep.yaml [more.yaml ...] [--cores 2] [-- snakemake options]
    python workflow/scripts/run_sweep.py workflow/sweep.yaml --profile slurm --partition main --account mine
"""

from __future__ import annotations

import one_sentence  # before what takes time: Ctrl-C then ends all of it quietly

# isort: split
import argparse
import sys
from pathlib import Path
from typing import TextIO

import cluster
from progress import OVERHEAD, Job, Progress, duration
from run import ROOT, Run, add_machine, check_data, check_place, check_room, machine, split

from dpsub.errors import PlanError
from dpsub.reproduce import lock
from dpsub.reproduce.sweep import SweepPlan, load


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", type=Path, nargs="+", help="YAML files, later ones over earlier ones")
    add_machine(parser)
    own, _, extra = split(sys.argv[1:])
    options = parser.parse_args(own)
    check_place(ROOT)
    config = load(options.sweep)
    results = Path(config.results_dir)
    slurm = machine(results, options)
    with lock.hold(results) as descriptor:
        if slurm is not None:
            slurm.cancel()  # what an earlier run has left there must not finish cells that are planned now
        plan = SweepPlan(config)
        if slurm is not None:
            check_partition(plan, slurm)
        check_room(results)
        check_data(plan, config.data.folder)
        plan.write()
        run = SweepRun(plan, options, slurm, descriptor)
        sys.exit(run.go(extra))


def check_partition(plan: SweepPlan, slurm: cluster.Slurm) -> None:
    """Raise PlanError if a job of the plan needs more memory than the partition gives to one."""
    limit = slurm.partition.mem_mb
    for job in plan.jobs.values():
        if job.memory > limit:
            raise PlanError(
                f"one job must fit into the partition {slurm.partition.name}, which gives it at most {limit} MiB of "
                f"memory, got one that needs {job.memory:.0f}; choose another partition (cell: {job.work[0].cell})"
            )


class SweepProgress(Progress):
    """Progress in which every job has the length that the plan expects of it."""

    def __init__(self, plan: SweepPlan, cores: int) -> None:
        super().__init__({}, cores)
        self.seconds = {part: job.seconds for part, job in plan.jobs.items()}

    def cost(self, job: Job) -> float:
        return self.seconds.get(job.wildcards.get("part", ""), OVERHEAD)

    def _begin(self) -> None:
        self.total = self.counts.pop("total", 0)
        others = sum(count for rule, count in self.counts.items() if rule != "run_cells")
        self.expected = sum(self.seconds.values()) + OVERHEAD * others


class SweepRun(Run):
    """One call of Snakemake on the jobs of a sweep's plan."""

    snakefile = ROOT / "workflow/sweep.smk"

    def __init__(
        self, plan: SweepPlan, options: argparse.Namespace, slurm: cluster.Slurm | None, descriptor: int
    ) -> None:
        options.config = [plan.manifest_file]
        super().__init__(plan, options, slurm, descriptor)
        if slurm is None:  # no more jobs at a time than this machine has memory for
            room = int(max([plan.memory_limit, *(job.memory for job in plan.jobs.values())]))
            self.command += ["--resources", f"mem_mb={room}"]

    def settle(self, log: TextIO) -> None:
        """Nothing: the plan has been made from what is in the store."""

    def progress(self) -> Progress:
        totals = self.plan.totals(self.cores)
        if self.plan.jobs:
            print(
                f"{totals['records_to_compute']} records of {totals['cells'] - totals['cells_finished']} cells "
                f"to compute in {totals['jobs']} jobs, about {duration(3600 * totals['hours'])} on {self.cores} cores; "
                f"{totals['cells_finished']} cells are finished",
                flush=True,
            )
        return SweepProgress(self.plan, self.cores)

    def summary(self, made: int, seconds: float) -> list[str]:
        names, results = self.plan.experiments, self.plan.results
        files = [str(results / "summary" / f"{name}.parquet") for name in names]
        paired = [str(results / "summary" / f"{name}_differences.parquet") for name in names]
        first = f"finished {made} jobs in {duration(seconds)}" if made else "nothing to do: every cell is finished"
        return [
            first,
            f"records: {results / 'records'}",
            f"one row a cell: {', '.join(files)}",
            f"differences from Poisson sampling: {', '.join(paired)}",
        ]


if __name__ == "__main__":
    one_sentence.run(main)
