"""Run the workflow: one run a results folder, checked before it starts, with progress and a summary at the end.

By hand:
    python workflow/scripts/run.py --cores 2 [--config workflow/smoke.yaml] [table8 figure4 ...] [-- snakemake options]
    python workflow/scripts/run.py --profile slurm --partition main --account mine      # on a cluster: docs/cluster.md
"""

from __future__ import annotations

import one_sentence  # before what takes time: Ctrl-C then ends all of it quietly

# isort: split
import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TextIO

import clock
import cluster
import leftovers
import preloaded
import start_job
import summary
from progress import Progress, duration, sentence_in

from dpsub import checks
from dpsub.data import fetch
from dpsub.data.dataset import REGISTRY
from dpsub.errors import PlanError
from dpsub.reproduce import configuration, lock
from dpsub.reproduce.plan import Plan

ROOT = Path(__file__).resolve().parents[2]
GRACE = 10  # seconds
ROOM = 100 << 20  # bytes; a full run needs about half of it


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, nargs="*", default=[], help="YAML files over config.yaml, in order")
    add_machine(parser)
    parser.add_argument("targets", nargs="*", help="tables and figures to make; everything by default")
    own, _, extra = split(sys.argv[1:])
    options = parser.parse_args(own)
    check_place(ROOT)
    config = configuration.load([ROOT / "config.yaml", *options.config])
    plan = Plan(config)
    _check_targets(plan, options.targets)
    slurm = machine(plan.results, options)
    if slurm is not None:
        slurm.check(plan.experiments)
    with lock.hold(plan.results) as descriptor:
        check_room(plan.results)
        check_data(plan, plan.config["data"]["folder"])
        run = Run(plan, options, slurm, descriptor)
        sys.exit(run.go([*extra, "--", *options.targets]))


def split(arguments: Sequence[str]) -> tuple[list[str], str, list[str]]:
    items = list(arguments)
    if "--" not in items:
        return items, "", []
    at = items.index("--")
    return items[:at], "--", items[at + 1 :]


def add_machine(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the jobs run."""
    parser.add_argument("--cores", type=int, help="jobs at a time (the processors here, or as in the profile)")
    parser.add_argument("--profile", default="default", help="a folder of workflow/profiles (%(default)s)")
    parser.add_argument("--partition", help="of the cluster (its default one)")
    parser.add_argument("--account", help="to which the cluster charges the jobs")


def machine(results: Path, options: argparse.Namespace) -> cluster.Slurm | None:
    """Return the cluster that the profile means, as a run into the folder `results` sees it; None for this machine."""
    if options.cores is not None and options.cores < 1:
        raise PlanError(f"cores must be at least 1, got cores = {options.cores}")
    known = cluster.profiles()
    if options.profile not in known:
        raise PlanError(f"unknown profile {options.profile!r}; {checks.nearest(options.profile, sorted(known))}")
    profile = known[options.profile]
    if profile.get("executor") != "slurm":
        if options.partition or options.account:
            raise PlanError("a partition or an account needs the profile of a cluster; add --profile slurm")
        return None
    return cluster.Slurm(profile, results, partition=options.partition, account=options.account)


def _check_targets(plan: Plan, targets: Sequence[str]) -> None:
    known = [name for product in plan.products for name in (product.target, *product.aliases)]
    for target in targets:
        if target not in known and target != "all" and not Path(target).suffix:
            near = checks.nearest(target, known)
            raise PlanError(f"unknown target {target!r}; {near}")


def check_place(project: Path) -> None:
    """Refuse a place of the project whose name Snakemake would take for a pattern."""
    if odd := sorted(set(str(project)) & set("{}<>")):
        raise PlanError(f"the project must lie in a folder without {odd[0]} in its path, got {project}; move it")


def check_room(folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < ROOM:
        raise PlanError(
            f"the disk of the results folder {folder} must have {ROOM >> 20} MiB free, got {free >> 20} MiB; "
            "free some space or set another results_dir"
        )


def check_data(plan: Plan, folder: str | None) -> None:
    """Verify the raw files that are there, so that a damaged one stops the run before any work."""
    table, raw = ROOT / "data/SOURCES.csv", Path("data/raw")
    for name in plan.data_sets(*plan.experiments):
        data_set = REGISTRY.get(name)
        fetch.obtain(
            data_set.source or name,
            data_set.files,
            sources=table,
            raw=raw,
            folder=Path(folder) if folder else None,
            download=False,
            fallback="synthetic",
        )


class Run:
    """One call of Snakemake, watched."""

    snakefile = ROOT / "Snakefile"

    def __init__(self, plan: Plan, options: argparse.Namespace, slurm: cluster.Slurm | None, descriptor: int) -> None:
        self.plan, self.slurm, self.descriptor = plan, slurm, descriptor
        self.cores = options.cores or (len(os.sched_getaffinity(0)) if slurm is None else slurm.at_once)
        self.log = plan.results / "logs" / "snakemake.log"
        self.command = [
            *(sys.executable, "-m", "snakemake", "--snakefile", str(self.snakefile)),
            *("--cores" if slurm is None else "--jobs", str(self.cores)),
            *(slurm.options() if slurm else []),
            *(["--configfile", *(str(path) for path in options.config)] if options.config else []),
            *("--workflow-profile", str(ROOT / "workflow/profiles" / options.profile), "--nocolor"),
        ]
        self.signals: list[int] = []
        self.child: subprocess.Popen[str] | None = None

    def go(self, arguments: Sequence[str]) -> int:
        """Run Snakemake, show its progress, and return the exit status."""
        started = time.monotonic()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._forward)
        signal.signal(signal.SIGALRM, self._end)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        clock.bring_back([self.plan.results, Path("data/interim")])
        self._clear_leftovers()
        progress = self.progress()
        status = self._watch(arguments, progress)
        if self.slurm and status:
            self.slurm.cancel()
        if self.signals:
            print(f"stopped after {duration(time.monotonic() - started)}; run again to go on from here", flush=True)
            return 128 + self.signals[0]
        if status:
            self._explain(progress, status)
            return 1
        if "--dry-run" in arguments or "-n" in arguments:
            print(f"{progress.total} jobs to do; see {self.log}")
            return 0
        print("\n".join(self.summary(progress.made, time.monotonic() - started)), flush=True)
        return 0

    def progress(self) -> Progress:
        """Return the state of a run that begins."""
        return Progress({name: len(self.plan.parts(name)) for name in self.plan.experiments}, self.cores)

    def summary(self, made: int, seconds: float) -> list[str]:
        """Return the last lines of a run that went through."""
        return summary.lines(self.plan, made=made, seconds=seconds)

    def _watch(self, arguments: Sequence[str], progress: Progress) -> int:
        preloaded_here = preloaded.running([self.descriptor]) if self.slurm is None else contextlib.nullcontext({})
        with self.log.open("w", encoding="utf-8") as log, preloaded_here as found:
            self.child = subprocess.Popen(
                [*self.command, *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                env={**os.environ, **found, **(self.slurm.limits() if self.slurm else {})},
                start_new_session=True,
                pass_fds=[self.descriptor],
                preexec_fn=partial(start_job.die_with_parent, os.getpid()),
            )
            if self.signals:
                self._end()  # what came before there was a child to hear it
            with self.child as child:
                for line in child.stdout or ():
                    log.write(line)
                    log.flush()
                    if shown := progress.feed(line):
                        print(shown, flush=True)
            signal.alarm(0)
            return child.returncode

    def _forward(self, number: int, _frame: object) -> None:
        """Let the running jobs end, but not for long: what is cut off is done again, and finished jobs are kept.

        Snakemake can lock up in its own handler of a signal, so its word is not waited for without end. Nothing is
        raised or printed here: Python drops what is raised in the middle of a fork, and a print can cut into another.
        """
        self.signals.append(number)
        first = len(self.signals) == 1 and self.slurm is None
        if first:
            with contextlib.suppress(OSError):
                os.write(sys.stdout.fileno(), f"stopping; the running jobs have {GRACE} s to end\n".encode())
        if first and self.child is not None:
            self.child.send_signal(signal.SIGTERM)
            signal.alarm(GRACE)
        else:
            self._end()

    def _end(self, *_: object) -> None:
        """Kill Snakemake and its jobs, which are one process group."""
        if self.child is not None and self.child.poll() is None:
            os.killpg(self.child.pid, signal.SIGKILL)

    def _clear_leftovers(self) -> None:
        """Clear what a killed run has left: the results lock is ours, so nobody works here."""
        if self.slurm and (count := self.slurm.cancel()):
            print(f"cancelled {count} jobs on the cluster that an earlier run had left", flush=True)
        locks = Path(".snakemake/locks")
        if locks.is_dir() and any(locks.iterdir()):
            shutil.rmtree(locks, ignore_errors=True)  # what --unlock does after it has read the workflow for seconds
            if self.slurm:
                with self.log.open("w", encoding="utf-8") as log:
                    self.settle(log)

    def settle(self, log: TextIO) -> None:
        """Keep or remove what jobs have finished that an earlier run had left on the cluster."""
        leftovers.settle(self.plan, self.command, log)

    def _explain(self, progress: Progress, status: int) -> None:
        logs = [Path(path) for path in dict.fromkeys(progress.failed_logs)]
        if self.slurm and (ended := cluster.endings(self.log.read_text(encoding="utf-8", errors="replace"))):
            print(f"Slurm ended jobs as {ended}, repetitions included", file=sys.stderr)
        for path in logs:
            print(f"error: {sentence_in(path)} (log: {path})", file=sys.stderr)
        if status < 0:
            print(f"error: Snakemake was killed by signal {-status} from outside (log: {self.log})", file=sys.stderr)
        elif not logs:
            print(f"error: {sentence_in(self.log)} (log: {self.log})", file=sys.stderr)
        print("finished jobs are kept; run again to go on from here", file=sys.stderr)


if __name__ == "__main__":
    one_sentence.run(main)
