"""What a cluster is asked for before the first job, against Slurm commands that say what the test wants."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dpsub.errors import PlanError
from dpsub.reproduce import settings
from tests.workflow import runs
from tests.workflow.runs import ROOT

sys.path.insert(0, str(ROOT / "workflow/scripts"))

import cluster

PROFILE = settings.read(ROOT / "workflow/profiles/slurm/config.yaml")
CONFIG = "AccountingStorageType   = accounting_storage/slurmdbd\nMinJobAge               = 300 sec\n"
PARTITION = "PartitionName={} Default={} MaxTime={} State={} MaxMemPerNode={}\n"
PARTITIONS = (
    PARTITION.format("main", "YES", "2-12:30:00", "UP", "UNLIMITED")
    + PARTITION.format("tiny", "NO", "00:05:00", "UP", "4000")
    + PARTITION.format("endless", "NO", "UNLIMITED", "UP", "500")
    + PARTITION.format("closed", "NO", "01:00:00", "DOWN", "UNLIMITED")
)


@pytest.fixture
def says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Files with the answers of Slurm's commands, by command; the test may write others."""
    answers = {
        "sbatch": "",
        "scancel": "",
        "sacctmgr": "physics\nbiology\n",
        "sinfo": "main|64000\nmain|256000+\ntiny|64000\nendless|64000\nclosed|64000\n",
        "squeue": "",
        "scontrol-config": CONFIG,
        "scontrol-partition": PARTITIONS,
    }
    made = {}
    for name, text in answers.items():
        made[name] = tmp_path / f"{name}.txt"
        made[name].write_text(text, encoding="utf-8")
        command = tmp_path / "bin" / name.partition("-")[0]
        command.parent.mkdir(exist_ok=True)
        answer = f"{tmp_path}/{command.name}{'-${!#}' if name.startswith('scontrol') else ''}.txt"
        command.write_text(f'#!/bin/bash\necho "$@" >> {tmp_path}/{command.name}.asked\nexec cat "{answer}"\n')
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return made


def slurm(**chosen: str) -> cluster.Slurm:
    return cluster.Slurm(PROFILE, Path("results"), **chosen)


def test_the_default_partition_bounds_what_is_asked_again(says: dict[str, Path]) -> None:
    found = slurm(account="physics")
    assert found.partition == cluster.Partition("main", 256000, 60 * 60 + 30, default=True)
    assert found.limits() == {"DPSUB_MAX_MEM_MB": "256000", "DPSUB_MAX_RUNTIME": "3630"}
    assert found.options()[:3] == ["--default-resources", "slurm_partition=main", "slurm_account=physics"]
    assert "DPSUB_MAX_RUNTIME" not in slurm(partition="endless").limits()


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        ({"partition": "mian"}, "unknown partition 'mian'; did you mean 'main'?"),
        ({"partition": "closed"}, "unknown partition 'closed'; known: endless, main, tiny"),
        ({"account": "phisics"}, "unknown account 'phisics'; did you mean 'physics'?"),
    ],
)
def test_an_unknown_name_is_refused(chosen: dict[str, str], sentence: str, says: dict[str, Path]) -> None:
    with pytest.raises(PlanError) as caught:
        slurm(**chosen)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("command", "answer", "sentence"),
    [
        (
            "scontrol-config",
            CONFIG.replace("300", "60"),
            "the cluster must remember finished jobs for 200 seconds, got Min",
        ),
        (
            "scontrol-partition",
            PARTITIONS.replace("YES", "NO"),
            "a partition must be named, as this cluster has no default",
        ),
    ],
)
def test_an_unsuitable_cluster_is_refused(command: str, answer: str, sentence: str, says: dict[str, Path]) -> None:
    says[command].write_text(answer, encoding="utf-8")
    with pytest.raises(PlanError, match=f"^{sentence}"):
        slurm()


def test_a_cluster_is_asked_in_a_way_that_it_answers(says: dict[str, Path]) -> None:
    by_sacct = {**PROFILE, "slurm-status-command": "sacct"}
    says["scontrol-config"].write_text(CONFIG.replace("300", "5"), encoding="utf-8")
    assert cluster.Slurm(by_sacct, Path("results")).partition.name == "main"
    says["scontrol-config"].write_text(CONFIG.replace("slurmdbd", "none"), encoding="utf-8")
    with pytest.raises(
        PlanError, match=r"^slurm-status-command must be squeue on a cluster that keeps no accounts, got"
    ):
        cluster.Slurm(by_sacct, Path("results"))


def test_a_silent_cluster_is_refused(says: dict[str, Path]) -> None:
    says["sinfo"].unlink()
    with pytest.raises(PlanError, match=r"^Slurm must answer sinfo .*, got: cat: .*sinfo.txt: No such file"):
        slurm()


def test_the_first_job_that_does_not_fit_is_named(says: dict[str, Path]) -> None:
    slurm().check(["composition", "distinct_counts"])
    with pytest.raises(
        PlanError, match=r"partition endless, .* at most 500 MiB of memory, and a job of tables and figures"
    ):
        slurm(partition="endless").check([])
    with pytest.raises(
        PlanError, match=r"partition tiny, .* at most 5 minutes of time, and a job of tables and figures"
    ):
        slurm(partition="tiny").check(["composition"])
    says["scontrol-partition"].write_text(
        PARTITIONS.replace("4000", "1600").replace("00:05", "10:05"), encoding="utf-8"
    )
    slurm(partition="tiny").check(["adult_logistic"])
    with pytest.raises(PlanError, match=r"at most 1600 MiB of memory, and a job of composition asks for 2000;"):
        slurm(partition="tiny").check(["adult_logistic", "composition"])


def test_only_the_jobs_of_this_results_folder_are_cancelled(says: dict[str, Path], tmp_path: Path) -> None:
    ours, other = slurm(), cluster.Slurm(PROFILE, Path("results-other"))
    assert ours.prefix != other.prefix and ours.prefix.startswith("dpsub-")
    says["squeue"].write_text(
        f"11 {ours.prefix}_x\n12 {other.prefix}_y\n13 dpsub\n14 {ours.prefix}_z\n", encoding="utf-8"
    )
    assert ours.jobs() == ["11", "14"]
    (tmp_path / "bin/scancel").write_text(f'#!/bin/bash\necho "$@" > {tmp_path}/ended\n: > {says["squeue"]}\n')
    assert ours.cancel() == 2
    assert (tmp_path / "ended").read_text() == "11 14\n"
    assert ours.cancel() == 0


def test_how_slurm_ended_jobs_is_counted() -> None:
    line = "    message: SLURM-job '{}' failed, SLURM status is: '{}'. Detailed failure reason unavailable.\n"
    states = ["TIMEOUT", "FAILED", "TIMEOUT"]
    assert cluster.endings("".join(line.format(i, state) for i, state in enumerate(states))) == "FAILED 1x, TIMEOUT 2x"
    assert cluster.endings("Finished jobid: 3\n") == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--profile", "slurn"], "unknown profile 'slurn'; did you mean 'slurm'?"),
        (["--partition", "main"], "a partition or an account needs the profile of a cluster; add --profile slurm"),
        (
            ["--profile", "slurm"],
            "the profile needs Slurm's commands on this machine, and sbatch is not on the PATH; "
            "start from a login node of the cluster, or leave the profile out",
        ),
    ],
)
def test_a_wrong_start_is_refused_in_a_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    status, output = runs.run(tmp_path, *arguments)
    assert (status, output) == (1, f"error: {sentence}\n")
    assert not (tmp_path / runs.RESULTS).exists()
