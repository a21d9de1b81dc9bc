"""A Slurm of two nodes on this machine, for tests: it listens on the loopback address and is
stopped by process id.

By hand, as root on Debian or Ubuntu:
    python tests/cluster/slurm_on_loopback.py install  # the packages; starts no service
    python tests/cluster/slurm_on_loopback.py start    # returns when both nodes are idle
    python tests/cluster/slurm_on_loopback.py stop     # exactly those

It keeps accounts, as most sites do, where slurmdbd and MariaDB are installed;
`DPSUB_TEST_SLURM=bare` leaves them out.
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
ACCOUNTING = ("slurmdbd", "mariadb-server-core")
TABLES = Path("/usr/share/mysql/mysql_system_tables.sql")
NODES = ("node1", "node2")
# in the order in which they are stopped
DAEMONS = (*NODES, "slurmctld", "slurmdbd", "mariadbd", "munged")
ACCOUNT = "project"  # the only one that root may use
# of each node; together more than there may be: jobs wait for Slurm and not for processors
CPUS = 2
PATIENCE = 30.0  # seconds

SLURM = """{mark}ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[slurmctld]}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={state}/munge.socket
CredType=cred/munge
StateSaveLocation={state}/controller
SlurmdSpoolDir={state}/%n
SlurmctldPidFile={state}/slurmctld.own.pid
SlurmdPidFile={state}/%n.own.pid
SlurmctldLogFile={state}/slurmctld.log
SlurmdLogFile={state}/%n.log
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
KillWait=2
MinJobAge=3600
ReturnToService=2
{accounting}
{nodes}
PartitionName=main Nodes={names} Default=YES MaxTime=60 DefaultTime=10 State=UP
PartitionName=short Nodes={names} MaxTime=2 DefaultTime=2 MaxMemPerNode=300 State=UP
"""
NODE = (
    "NodeName={name} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory={memory} State=UNKNOWN"
)
WITH_ACCOUNTS = """AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={state}/munge.socket
AccountingStorageEnforce=associations
JobCompType=jobcomp/none"""
WITHOUT_ACCOUNTS = "AccountingStorageType=accounting_storage/none"
SLURMDBD = """AuthType=auth/munge
AuthInfo=socket={state}/munge.socket
CommunicationParameters=NoInAddrAny
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
LogFile={state}/slurmdbd.log
PidFile={state}/slurmdbd.own.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=accounts
"""


def why_not() -> str:
    """Return why this machine cannot run the daemons, or nothing if it can."""
    if os.geteuid() != 0:
        return "the daemons of Slurm must be started as root"
    needed = ("slurmd", "slurmctld", "munged", "sbatch", "srun", "unshare", "nsenter")
    missing = [name for name in needed if shutil.which(name) is None]
    if missing:
        return f"Slurm is not installed ({missing[0]} is missing)"
    if CONFIG.exists() and not ours():
        return f"{CONFIG} belongs to another Slurm"
    return ""


def why_no_accounts() -> str:
    """Return why this Slurm keeps no accounts, or nothing if it does."""
    if os.environ.get("DPSUB_TEST_SLURM") == "bare":
        return "DPSUB_TEST_SLURM=bare asks for a Slurm that keeps no accounts"
    missing = [name for name in ("slurmdbd", "mariadbd") if shutil.which(name) is None]
    return f"Slurm's accounting is not installed ({missing[0]} is missing)" if missing else ""


def ours() -> bool:
    return CONFIG.exists() and CONFIG.read_text(encoding="utf-8", errors="replace").startswith(MARK)


def install() -> None:
    """Install Debian's packages; no service is started by it. Accounting is left out where it
    cannot be installed."""
    policy = Path("/usr/sbin/policy-rc.d")
    made = not policy.exists()
    if made:
        policy.write_text("#!/bin/sh\nexit 101\n", encoding="utf-8")
        policy.chmod(0o755)
    settings = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}

    def apt(*line: str) -> int:
        whole = ["apt-get", "--quiet=2", *line]
        return subprocess.run(
            whole, env=settings, stdout=subprocess.DEVNULL, check=False
        ).returncode

    try:
        apt("update")
        if apt("install", "--yes", "--no-install-recommends", *PACKAGES):
            raise SystemExit("Slurm could not be installed")
        if apt("install", "--yes", "--no-install-recommends", *ACCOUNTING):
            print("Slurm is installed without accounting", file=sys.stderr)
    finally:
        if made:
            policy.unlink()


def start() -> None:
    """Start the daemons, and return when both nodes take jobs."""
    if reason := why_not():
        raise RuntimeError(reason)
    stop()
    for folder in (STATE, STATE / "controller", *(STATE / name for name in NODES)):
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    key = STATE / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 2 // 5 >> 20
    names = ("slurmctld", "slurmdbd", *NODES)
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    accounts = not why_no_accounts()
    CONFIG.parent.mkdir(parents=True, exist_ok=True)
    nodes = [NODE.format(name=name, port=ports[name], cpus=CPUS, memory=memory) for name in NODES]
    CONFIG.write_text(
        SLURM.format(
            mark=MARK,
            host=socket.gethostname().split(".")[0],
            state=STATE,
            ports=ports,
            names=",".join(NODES),
            nodes="\n".join(nodes),
            accounting=WITH_ACCOUNTS.format(state=STATE, port=ports["slurmdbd"])
            if accounts
            else WITHOUT_ACCOUNTS,
        ),
        encoding="utf-8",
    )
    files = {
        "--socket": "socket",
        "--key-file": "key",
        "--seed-file": "seed",
        "--log-file": "log",
        "--pid-file": "pid",
    }
    places = [f"{option}={STATE}/munge.{suffix}" for option, suffix in files.items()]
    _launch("munged", "munged", "--foreground", "--force", *places)
    _wait(lambda: _says("munge", "-n", "-S", f"{STATE}/munge.socket") is not None, "munged")
    if accounts:
        _start_accounting(ports["slurmdbd"])
    start_controller("-c")
    for name in NODES:
        # A node has file systems mounted of its own, so that a test can make it see other files
        # than the login side.
        _launch(name, "unshare", "--mount", "--propagation", "private", "slurmd", "-D", "-N", name)
    _wait(
        lambda: (_says("sinfo", "-h", "-p", "main", "-t", "idle", "-o", "%D") or "").strip() == "2",
        "node",
    )


def start_controller(*options: str) -> None:
    _launch("slurmctld", "slurmctld", "-D", *options)
    _wait(lambda: "UP" in (_says("scontrol", "ping") or ""), "slurmctld")


def _start_accounting(port: int) -> None:
    """Start a MariaDB that listens on a socket in a folder that is closed to others, and slurmdbd
    on top of it."""
    folder = STATE / "database"
    folder.mkdir(mode=0o700)
    data, sock = folder / "data", folder / "socket"
    data.mkdir()
    # Debian's mariadb-install-db needs more packages. Any user may do all in it, as root alone sees
    # the socket.
    own = ("mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", "--skip-grant-tables")
    tables = TABLES.read_text(encoding="utf-8")
    subprocess.run(
        [*own, "--bootstrap"],
        input=f"create database mysql;\nuse mysql;\n{tables}",
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=PATIENCE,
        check=True,
    )
    _launch(
        "mariadbd",
        *own,
        f"--socket={sock}",
        "--skip-networking",
        f"--pid-file={folder}/pid",
        "--innodb-buffer-pool-size=64M",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-lock-wait-timeout=900",
    )
    _wait(sock.exists, "mariadbd")
    (folder / "slurmdbd.conf").touch(mode=0o600)
    (folder / "slurmdbd.conf").write_text(SLURMDBD.format(state=STATE, port=port), encoding="utf-8")
    where = {"SLURM_CONF": str(folder / "slurm.conf"), "MYSQL_UNIX_PORT": str(sock)}
    _launch("slurmdbd", "slurmdbd", "-D", environment=where)
    _wait(lambda: _says("sacctmgr", "--noheader", "list", "cluster") is not None, "slurmdbd")
    for line in (
        ["cluster", "loopback"],
        ["account", ACCOUNT],
        ["user", "root", f"account={ACCOUNT}"],
    ):
        subprocess.run(
            ["sacctmgr", "--immediate", "--quiet", "add", *line],
            stdout=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=True,
        )


def stop() -> None:
    """End all jobs and the daemons that `start` has started; nothing else is touched."""
    if not ours():
        return
    if process("slurmctld"):
        _says("scancel", "--user=root")
        # a job that does not end must not keep the daemons alive
        with contextlib.suppress(TimeoutError):
            _wait(lambda: not _says("squeue", "--noheader"), "the end of the jobs")
    for name in DAEMONS:
        end(name)
    for number in orphans():
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    CONFIG.unlink()
    shutil.rmtree(STATE, ignore_errors=True)


def orphans() -> list[int]:
    """Return processes of jobs that have lost their parents: without cgroups Slurm may fail to find
    and to end them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if b"SLURM_CLUSTER_NAME=loopback" in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def end(name: str) -> None:
    """End one daemon that `start` has started, if it runs."""
    number = process(name)
    for last, number_of_signal in ((False, signal.SIGTERM), (True, signal.SIGKILL)):
        if not number:
            return
        os.kill(number, number_of_signal)
        try:
            _wait(lambda: not process(name), name)
        except TimeoutError:
            if last:
                raise
        else:
            return


def process(name: str) -> int:
    """Return the process id of a daemon that `start` has started, or 0 if it does not run."""
    try:
        number = int((STATE / f"{name}.pid").read_text(encoding="utf-8"))
        state = Path(f"/proc/{number}/stat").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return 0
    comm = "slurmd" if name in NODES else name
    alive = (
        state[state.index("(") + 1 : state.rindex(")")] == comm
        and state[state.rindex(")") + 2] != "Z"
    )
    return number if alive else 0


def free_ports(count: int) -> list[int]:
    with_ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [each.getsockname()[1] for each in with_ports]
    for each in with_ports:
        each.close()
    return found


def _launch(name: str, *command: str, environment: dict[str, str] | None = None) -> None:
    with (STATE / f"{name}.out").open("ab") as out:
        made = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | (environment or {}),
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
            logs = "".join(
                path.read_text(errors="replace")[-2000:] for path in STATE.glob(f"{name}*.*o[ug]*")
            )
            raise TimeoutError(
                f"{name} must follow within {PATIENCE:.0f} seconds; its messages: {logs}"
            )
        time.sleep(0.1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=["install", "start", "stop"])
    sys.exit({"install": install, "start": start, "stop": stop}[parser.parse_args().action]())
