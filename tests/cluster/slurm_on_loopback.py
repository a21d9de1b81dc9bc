"""A Slurm of one node on this machine, for tests: it listens on the loopback address only and is stopped by process id.

By hand, as root on Debian or Ubuntu:
    python tests/cluster/slurm_on_loopback.py install     # the packages, without starting a service
    python tests/cluster/slurm_on_loopback.py start       # munged, slurmctld, slurmd; returns when a node is idle
    python tests/cluster/slurm_on_loopback.py stop        # exactly those three
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

STATE = Path("/tmp/dpsub-slurm")  # the daemons' files: keys, logs, spool, process ids
CONFIG = Path("/etc/slurm/slurm.conf")  # the only place that the nested calls of the plugin look at
MARK = "# made by dpsub's tests; removed when they stop this Slurm\n"
PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
DAEMONS = ("slurmd", "slurmctld", "munged")  # in the order in which they are stopped
PARTITIONS = ("main", "short")
CPUS = 8  # more than there are, so that jobs wait for memory and not for processors
PATIENCE = 30.0  # seconds

TEXT = """{mark}ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={state}/munge.socket
CredType=cred/munge
StateSaveLocation={state}/controller
SlurmdSpoolDir={state}/node
SlurmctldPidFile={state}/slurmctld.own.pid
SlurmdPidFile={state}/slurmd.own.pid
SlurmctldLogFile={state}/slurmctld.log
SlurmdLogFile={state}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=bf_interval=1,sched_min_interval=100000,batch_sched_delay=0
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
KillWait=2
MinJobAge={age}
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=60 DefaultTime=10 State=UP
PartitionName=short Nodes={host} MaxTime=2 DefaultTime=2 MaxMemPerNode=300 State=UP
"""


def why_not() -> str:
    """Return why this machine cannot run the daemons, or nothing if it can."""
    if os.geteuid() != 0:
        return "the daemons of Slurm must be started as root"
    missing = [name for name in (*DAEMONS, "sbatch", "srun", "unshare", "nsenter") if shutil.which(name) is None]
    if missing:
        return f"Slurm is not installed ({missing[0]} is missing)"
    if CONFIG.exists() and not ours():
        return f"{CONFIG} belongs to another Slurm"
    return ""


def ours() -> bool:
    return CONFIG.exists() and CONFIG.read_text(encoding="utf-8", errors="replace").startswith(MARK)


def install() -> None:
    """Install Debian's packages; no service is started by it."""
    policy = Path("/usr/sbin/policy-rc.d")
    made = not policy.exists()
    if made:
        policy.write_text("#!/bin/sh\nexit 101\n", encoding="utf-8")
        policy.chmod(0o755)
    settings = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        for line in (["update"], ["install", "--yes", "--no-install-recommends", *PACKAGES]):
            subprocess.run(["apt-get", "--quiet=2", *line], env=settings, stdout=subprocess.DEVNULL, check=True)
    finally:
        if made:
            policy.unlink()


def start(*, min_job_age: int = 3600) -> None:
    """Start the three daemons, and return when the node takes jobs."""
    if reason := why_not():
        raise RuntimeError(reason)
    stop()
    for folder in (STATE, STATE / "controller", STATE / "node"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    key = STATE / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 4 // 5 >> 20
    controller, node = free_ports(2)
    CONFIG.parent.mkdir(parents=True, exist_ok=True)
    CONFIG.write_text(
        TEXT.format(
            mark=MARK, host=socket.gethostname().split(".")[0], state=STATE, controller=controller, node=node,
            cpus=CPUS, memory=memory, age=min_job_age,
        ),
        encoding="utf-8",
    )  # fmt: skip
    files = {"--socket": "socket", "--key-file": "key", "--seed-file": "seed", "--log-file": "log", "--pid-file": "pid"}
    places = [f"{option}={STATE}/munge.{suffix}" for option, suffix in files.items()]
    _launch("munged", "munged", "--foreground", "--force", *places)
    _wait(lambda: _says("munge", "-n", "-S", f"{STATE}/munge.socket") is not None, "munged")
    _launch("slurmctld", "slurmctld", "-D", "-c")
    _wait(lambda: "UP" in (_says("scontrol", "ping") or ""), "slurmctld")
    # The node has file systems mounted of its own, so that a test can make it see other files than the login side.
    _launch("slurmd", "unshare", "--mount", "--propagation", "private", "slurmd", "-D")
    _wait(lambda: (_says("sinfo", "-h", "-o", "%T") or "").startswith(("idle", "mixed")), "slurmd")


def stop() -> None:
    """End all jobs and the daemons that `start` has started; nothing else is touched."""
    if not ours():
        return
    if process("slurmctld"):
        _says("scancel", "--user=root")
        with contextlib.suppress(TimeoutError):  # a job that does not end must not keep the daemons alive
            _wait(lambda: not _says("squeue", "--noheader"), "the end of the jobs")
    for name in DAEMONS:
        if number := process(name):
            os.kill(number, signal.SIGTERM)
            for last in (False, True):
                try:
                    _wait(lambda name=name: not process(name), name)
                except TimeoutError:
                    if last:
                        raise
                    os.kill(number, signal.SIGKILL)
                else:
                    break
    CONFIG.unlink()
    shutil.rmtree(STATE, ignore_errors=True)


def process(name: str) -> int:
    """Return the process id of a daemon that `start` has started, or 0 if it does not run."""
    try:
        number = int((STATE / f"{name}.pid").read_text(encoding="utf-8"))
        state = Path(f"/proc/{number}/stat").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return 0
    alive = state[state.index("(") + 1 : state.rindex(")")] == name and state[state.rindex(")") + 2] != "Z"
    return number if alive else 0


def free_ports(count: int) -> list[int]:
    with_ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [each.getsockname()[1] for each in with_ports]
    for each in with_ports:
        each.close()
    return found


def _launch(name: str, *command: str) -> None:
    with (STATE / f"{name}.out").open("wb") as out:
        made = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        )
    (STATE / f"{name}.pid").write_text(str(made.pid), encoding="utf-8")


def _says(*command: str) -> str | None:
    """Return what a short command prints, or nothing if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.stdout if done.returncode == 0 else None


def _wait(ready: Callable[[], bool], name: str) -> None:
    limit = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > limit:
            logs = "".join(path.read_text(errors="replace")[-2000:] for path in STATE.glob(f"{name}.*o[ug]*"))
            raise TimeoutError(f"{name} must follow within {PATIENCE:.0f} seconds; its messages: {logs}")
        time.sleep(0.1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["install", "start", "stop"])
    sys.exit({"install": install, "start": start, "stop": stop}[parser.parse_args().action]())
