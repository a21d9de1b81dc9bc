"""What a run asks of a Slurm cluster, checked before the first job; and the jobs that it has there."""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsub import checks
from dpsub.errors import PlanError
from dpsub.reproduce import settings

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ROOT / "workflow/profiles"
NEEDS = ROOT / "workflow/resources.yaml"
COMMANDS = ("sbatch", "scancel", "scontrol", "sinfo", "squeue")
ANSWER = 60  # seconds that Slurm has for an answer
AT_ONCE = 500  # job numbers in one call of scancel
REMEMBERED = 200  # seconds; the plugin asks for its jobs every 180 s at the latest
UNLIMITED = ("UNLIMITED", "INFINITE")


@dataclass(frozen=True)
class Partition:
    """What a partition gives to one job: MiB of memory and minutes, None where there is no limit."""

    name: str
    mem_mb: int
    runtime: int | None
    default: bool = False


def profiles() -> dict[str, dict[str, Any]]:
    """Return the profiles in workflow/profiles by name."""
    return {path.parent.name: settings.read(path) for path in sorted(PROFILES.glob("*/config.yaml"))}


class Slurm:
    """The Slurm of this machine, as one run of the workflow sees it.

    Parameters
    ----------
    profile : mapping
        A profile whose executor is slurm.
    results : Path
        The results folder; it names the jobs of the run, so that they are found again.
    partition, account : str or None
        Over those of the profile.

    Raises
    ------
    PlanError
        If Slurm is not there or not usable, or does not know the partition or the account.
    """

    def __init__(
        self, profile: Mapping[str, Any], results: Path, *, partition: str | None = None, account: str | None = None
    ) -> None:
        for command in COMMANDS:
            if shutil.which(command) is None:
                raise PlanError(
                    f"the profile needs Slurm's commands on this machine, and {command} is not on the PATH; "
                    "start from a login node of the cluster, or leave the profile out"
                )
        self.configuration = _pairs(_ask("scontrol", "show", "config").splitlines(), " = ")
        chosen = dict(str(item).split("=", 1) for item in profile.get("default-resources") or [])
        self.account = account or chosen.pop("slurm_account", None)
        self.partition = self._partition(partition or chosen.get("slurm_partition"))
        self._check_account()
        self._check_status_command(str(profile.get("slurm-status-command", "sacct")))
        folder = hashlib.sha256(os.fspath(results.resolve()).encode()).hexdigest()[:10]
        self.prefix = f"{profile.get('slurm-jobname-prefix', 'dpsub')}-{folder}"
        chosen |= {"slurm_partition": self.partition.name}
        chosen |= {"slurm_account": self.account} if self.account else {}
        self.at_once = int(profile.get("jobs", 100))
        self.defaults = [f"{name}={value}" for name, value in chosen.items()]

    def options(self) -> list[str]:
        """Return what Snakemake is told beyond its profile."""
        return ["--default-resources", *self.defaults, "--slurm-jobname-prefix", self.prefix]

    def limits(self) -> dict[str, str]:
        """Return the environment variables that bound what a job asks for when it is submitted again."""
        found = {"DPSUB_MAX_MEM_MB": str(self.partition.mem_mb)}
        if self.partition.runtime is not None:
            found["DPSUB_MAX_RUNTIME"] = str(self.partition.runtime)
        return found

    def check(self, experiments: Iterable[str]) -> None:
        """Check that the partition has room for one job of everything that the run does.

        Raises
        ------
        PlanError
            If it has not; the message names the job.
        """
        needs = settings.read(NEEDS)
        for name, own in {
            "tables and figures": {},
            **{name: needs["experiments"].get(name, {}) for name in experiments},
        }.items():
            need = {**needs["default"], **own}
            for resource, unit, noun in (("mem_mb", "MiB", "memory"), ("runtime", "minutes", "time")):
                limit = getattr(self.partition, resource)
                if limit is not None and need[resource] > limit:
                    raise PlanError(
                        f"one job must fit into the partition {self.partition.name}, which gives it at most {limit} "
                        f"{unit} of {noun}, and a job of {name} asks for {need[resource]}; choose another partition, "
                        f"or lower {resource} in workflow/resources.yaml"
                    )

    def jobs(self) -> list[str]:
        """Return the numbers of this results folder's jobs that wait or run."""
        lines = _ask("squeue", "--noheader", "--user", getpass.getuser(), "--format", "%i %j").splitlines()
        found = [line.split(None, 1) for line in lines if line.strip()]
        return [number for number, name in found if name.startswith(self.prefix + "_")]

    def cancel(self) -> int:
        """Cancel the jobs of a run that is no more, wait until they are gone, and return how many there were."""
        found = self.jobs()
        for at in range(0, len(found), AT_ONCE):
            _ask("scancel", *found[at : at + AT_ONCE])
        limit = time.monotonic() + ANSWER
        while self.jobs() and time.monotonic() < limit:
            time.sleep(0.5)
        return len(found)

    def _partition(self, name: str | None) -> Partition:
        known = {partition.name: partition for partition in _partitions()}
        if name is None:
            defaults = [partition for partition in known.values() if partition.default]
            if not defaults:
                raise PlanError(
                    f"a partition must be named, as this cluster has no default one; known: {', '.join(sorted(known))}"
                )
            return defaults[0]
        if name not in known:
            raise PlanError(f"unknown partition {name!r}; {checks.nearest(name, sorted(known))}")
        return known[name]

    def _check_account(self) -> None:
        if self.account is None:
            return
        if not self._keeps_accounts():
            raise PlanError(
                f"the account must be left out on a cluster that keeps no accounts, got {self.account!r}; leave it out"
            )
        lines = _ask(
            "sacctmgr", "-nP", "list", "associations", f"user={getpass.getuser()}", "format=account"
        ).splitlines()
        known = sorted({line.strip() for line in lines if line.strip()})
        if known and self.account not in known:
            raise PlanError(f"unknown account {self.account!r}; {checks.nearest(self.account, known)}")

    def _keeps_accounts(self) -> bool:
        return not self.configuration.get("AccountingStorageType", "").endswith("/none")

    def _check_status_command(self, command: str) -> None:
        """Refuse a way to ask for jobs that never hears of their end: the run would wait without end."""
        if command == "sacct":
            if not self._keeps_accounts():
                raise PlanError(
                    "slurm-status-command must be squeue on a cluster that keeps no accounts, got sacct; "
                    "correct it in the profile"
                )
            return
        age = int(self.configuration.get("MinJobAge", "0").split()[0])
        if age < REMEMBERED:
            raise PlanError(
                f"the cluster must remember finished jobs for {REMEMBERED} seconds, got MinJobAge = {age}; "
                "set slurm-status-command: sacct in the profile if the cluster keeps accounts, or ask for a longer time"
            )


def endings(log: str) -> str:
    """Return how often Slurm has ended jobs in which way, as Snakemake's log `log` tells it; empty if it has not."""
    found = Counter(re.findall(r"SLURM-job '\d+' failed, SLURM status is: '(\w+)", log))
    return ", ".join(f"{state} {count}x" for state, count in sorted(found.items()))


def _partitions() -> list[Partition]:
    """Return the partitions that take jobs."""
    nodes: dict[str, int] = {}
    for line in _ask("sinfo", "--noheader", "--format", "%R|%m").splitlines():
        name, _, memory = line.strip().partition("|")
        nodes[name] = max(nodes.get(name, 0), int(memory.rstrip("+") or 0))
    found = []
    for line in _ask("scontrol", "--oneliner", "show", "partition").splitlines():
        fields = _pairs(line.split(), "=")
        name, most = fields.get("PartitionName", ""), fields.get("MaxMemPerNode", "UNLIMITED")
        if name and fields.get("State", "UP") == "UP":
            memory = nodes.get(name, 0) if most in UNLIMITED else min(nodes.get(name, 0), int(most))
            found.append(
                Partition(name, memory, _minutes(fields.get("MaxTime", "UNLIMITED")), fields.get("Default") == "YES")
            )
    return found


def _minutes(text: str) -> int | None:
    """Return the minutes in Slurm's [days-]hours:minutes:seconds."""
    if text in UNLIMITED:
        return None
    days, _, clock = text.rpartition("-")
    hours, minutes, _ = clock.split(":")
    return (int(days or 0) * 24 + int(hours)) * 60 + int(minutes)


def _pairs(items: Iterable[str], sign: str) -> dict[str, str]:
    split = (item.partition(sign) for item in items)
    return {name.strip(): value.strip() for name, found, value in split if found}


def _ask(*command: str) -> str:
    """Return what one of Slurm's commands answers."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise PlanError(_unanswered(command, type(problem).__name__)) from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise PlanError(_unanswered(command, lines[-1].strip() if lines else f"exit status {done.returncode}"))
    return done.stdout


def _unanswered(command: Sequence[str], answer: str) -> str:
    return f"Slurm must answer {' '.join(command[:3])}, got: {answer}; see whether sinfo works, and run again"
