"""Make or renew the virtual environment of the project; does nothing when it is complete and up to date.

    python3 workflow/scripts/make_environment.py .venv

Runs on any Python from 3.6, to be able to say which one is needed; an environment that is there keeps the Python that
made it, until its folder is removed. The environment counts as finished only when its stamp, written last, holds the
digest of what it was made from: one that was interrupted half-way is made anew.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys

NEEDED = (3, 11)
SOURCES = ("requirements.lock", "pyproject.toml")
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main():
    if len(sys.argv) != 2:
        stop("make_environment.py takes one argument, the folder of the environment")
    folder = os.path.abspath(sys.argv[1])
    stamp, python = os.path.join(folder, ".complete"), os.path.join(folder, "bin", "python")
    if read(stamp) == digest(python):
        return
    if not complete(stamp, python) and sys.version_info < NEEDED:
        found = f"{sys.version.split()[0]} at {sys.executable}"
        stop(f"Python 3.11 or later is needed, got {found}; name one, as in make PYTHON=python3.12 reproduce")
    with open(folder + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two calls at once: the second one waits and finds the work done
        if read(stamp) == digest(python):
            return
        make(folder, stamp, python)
        with open(stamp + ".tmp", "w") as out:
            out.write(digest(python))
        os.replace(stamp + ".tmp", stamp)


def make(folder, stamp, python):
    if complete(stamp, python):  # but made from other pins: bring it up to date
        os.remove(stamp)
    else:
        shutil.rmtree(folder, ignore_errors=True)
        print(f"making the environment {folder}", flush=True)
        run([sys.executable, "-m", "venv", folder], "install venv for it (on Debian and Ubuntu: python3-venv)")
    print("installing what requirements.lock pins; this takes a minute or two", flush=True)
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "-qq"]
    run([*pip, "-r", os.path.join(TOP, "requirements.lock")], "check the network and try again")
    run([*pip, "--no-deps", "--no-build-isolation", "-e", TOP], "check pyproject.toml")


def run(command, way_out):
    status = subprocess.call(command)
    if status:
        stop(f"the environment must be made by `{' '.join(command)}`, which failed; {way_out}")


def complete(stamp, python):
    return os.path.exists(stamp) and version(python) != ""


def version(python):
    """Return the version of an interpreter as text, empty if it does not run, as when the system's Python has gone."""
    try:
        line = [python, "-S", "-c", "import sys; print(sys.version_info[:2])"]
        return subprocess.check_output(line, stderr=subprocess.DEVNULL).decode()
    except (OSError, subprocess.CalledProcessError):
        return ""


def digest(python):
    """Return the digest of what the environment is made from; the Python in it counts, not the one that runs this."""
    total = hashlib.sha256(f"{version(python)} {TOP}".encode())
    for name in SOURCES:
        with open(os.path.join(TOP, name), "rb") as source:
            total.update(source.read())
    return total.hexdigest()


def read(path):
    try:
        with open(path) as source:
            return source.read()
    except (OSError, UnicodeDecodeError):
        return ""


def stop(message):
    sys.exit("error: " + message)


if __name__ == "__main__":
    main()
