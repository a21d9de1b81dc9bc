"""Start jobs as copies of one process, which has loaded the libraries: loading them takes longer than most jobs.

`running` starts that process next to a run on this machine. It listens on a socket; `start_job.py` hands it the
arguments, folder, environment and standard streams of a job, and ends with the job's exit status. What a job does is
in its script alone: without the process (on a cluster, with plain snakemake) the same command starts Python as usual.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import runpy
import secrets
import select
import signal
import socket
import struct
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import one_sentence  # noqa: F401 (it ties the process that loads it to its parent: here, not in each job)
import start_job

from dpsub import threads

COMMON = (  # what nearly all jobs import
    *("pandas", "pyarrow.dataset", "scipy.optimize", "scipy.special"),
    *("dpsub.reproduce.artefact", "dpsub.reproduce.experiments"),
    *("dpsub.reproduce.provenance", "dpsub.reproduce.records"),
)
RARE = ("scipy.stats", "matplotlib.figure", "matplotlib.style", "matplotlib.backends.backend_agg",
        "matplotlib.backends.backend_pdf")  # fmt: skip
ONE_THREAD = threads.ONE | {"JE_ARROW_MALLOC_CONF": "background_thread:false"}  # a copy has only the one that made it
FEW = 12  # jobs that import rare modules themselves: a run of no more would not gain what loading all of them takes
GRACE = 10  # seconds


@contextlib.contextmanager
def running(descriptors: Sequence[int]) -> Iterator[dict[str, str]]:
    """Run the process; yield the variables by which jobs find it. It and its jobs end with the block, or with us.

    Parameters
    ----------
    descriptors : sequence of int
        Open files that stay open until the last job has ended, such as the lock of the results folder.
    """
    if sys.platform != "linux":  # elsewhere the copy of a process that has loaded numerical libraries may not work
        yield {}
        return
    name = f"dpsub-{secrets.token_hex(16)}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(f"\0{name}")  # a name, not a file that a killed run would leave behind
        listener.listen(64)  # from here on jobs may ask, and wait until all is loaded
        process = subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={**os.environ, **ONE_THREAD},
            pass_fds=[listener.fileno(), *descriptors],
            start_new_session=True,
            preexec_fn=functools.partial(start_job.die_with_parent, os.getpid()),
        )
    try:
        yield {start_job.VARIABLE: name}
    finally:
        try:
            process.communicate(timeout=GRACE)  # the end of its input is the end of its work
        except subprocess.TimeoutExpired:  # it may be loading on a slow machine
            process.kill()
            process.communicate()


def serve(listener: socket.socket) -> None:
    """Start a job for each connection, until standard input ends; the kernel then ends the jobs with their parents."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for supervisors
    server, started = os.getpid(), 0
    while sys.stdin not in select.select([sys.stdin, listener], [], [])[0]:
        link, _ = listener.accept()
        if started in (0, FEW):
            _load(everything=started == FEW)
        started += 1
        if os.fork() == 0:
            listener.close()
            start_job.die_with_parent(server)
            _supervise(link)
        link.close()


def _load(*, everything: bool) -> None:
    for name in (*COMMON, *(RARE if everything else ())):
        importlib.import_module(name)
    if everything:
        from dpsub.reproduce import artefacts, experiments

        for registry in (artefacts.REGISTRY, experiments.REGISTRY):
            registry.names()
    gc.collect()
    gc.freeze()  # what jobs share is not touched, so it is not copied


def _supervise(link: socket.socket) -> NoReturn:
    """Run one job and report its exit status; kill it when the one who asked for it is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, user, _ = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    if user != os.getuid():
        os._exit(1)  # whatever others ask for
    try:
        header, streams, _, _ = socket.recv_fds(link, struct.calcsize(start_job.LENGTH), 3)
        (length,) = struct.unpack(start_job.LENGTH, header)
        with link.makefile("rb") as sent:
            request = json.loads(sent.read(length))
    except (OSError, ValueError, struct.error):
        os._exit(1)  # who asked has ended before saying what for
    ended, working = os.pipe()
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        start_job.die_with_parent(supervisor)
        link.close()
        os.close(ended)
        _become(request, streams)
    os.close(working)
    if link in select.select([link, ended], [], [])[0]:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(OSError):
        link.sendall(bytes([code if code >= 0 else 128 - code]))
    os._exit(0)


def _become(request: dict[str, Any], streams: Sequence[int]) -> NoReturn:
    """Be the job: its streams, folder, environment and arguments are ours, and its end is our end."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    code = 1
    try:
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.argv = request["arguments"]
        runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if code and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        for written in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                written.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
