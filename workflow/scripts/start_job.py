"""Start a job in a copy of the process of `preloaded.py` that its run has; without one, start Python as usual.

In rules:
    python -I -S -X utf8 workflow/scripts/start_job.py workflow/scripts/build_artefact.py --artefact must/table9 ...
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import struct
import sys

VARIABLE = "DPSUB_PRELOADED"  # name of its socket
LENGTH = "!Q"  # of the request, sent ahead of it with the streams

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when its parent dies, so that a killed run leaves no job behind (Linux).

    Ends it at once if `parent`, the process that started it, has died in the meantime.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def main() -> None:
    if "DPSUB_JOB" in os.environ:
        die_with_parent(int(os.environ["DPSUB_JOB"]))
    request = {"arguments": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}
    text = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        try:
            link.connect(f"\0{os.environ[VARIABLE]}")
            socket.send_fds(link, [struct.pack(LENGTH, len(text))], [0, 1, 2])
            link.sendall(text)
        except (KeyError, OSError):
            os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
        status = link.recv(1)
    if not status:
        sys.exit("error: the process that runs the jobs must live as long as they do, and has ended; run again")
    sys.exit(status[0])


if __name__ == "__main__":
    main()
