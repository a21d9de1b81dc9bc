"""Writing keeps links, modes and owners of a path; a path that is no file is neither written nor
read."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import dpsub
from dpsub import files
from dpsub.cli import main
from dpsub.errors import DataError

RELEASE = ["poisson", "--rate", ".01", "--noise-multiplier", "2", "--steps", "3"]
CERTIFIED = ["account", *RELEASE, "--delta", "1e-5", "--quick"]
CURVE = ["curve", *RELEASE, "--quick"]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def writers(path: Path) -> list[list[str]]:
    """Return commands that write a file."""
    return [
        ["record", str(path), *RELEASE],
        [*CERTIFIED, "--certificate", str(path)],
        [*CURVE, "--csv", str(path)],
        [*CURVE, "--plot", str(path)],
    ]


def test_a_link_stays_and_its_target_changes(tmp_path: Path) -> None:
    real, link, second = tmp_path / "deep/real.json", tmp_path / "l.json", tmp_path / "m.json"
    real.parent.mkdir()
    link.symlink_to("deep/real.json")
    second.symlink_to(link)
    # also a link to what does not exist yet
    for count, path in enumerate((second, link, real), start=1):
        assert main(["record", str(path), *RELEASE]) == 0
        assert len(dpsub.Ledger.load(real)) == count
    assert link.is_symlink() and second.is_symlink() and not real.is_symlink()
    # one lock for all names, beside the file
    assert {file.name for file in tmp_path.iterdir()} == {"deep", "l.json", "m.json"}
    assert {file.name for file in real.parent.iterdir()} == {"real.json", ".real.json.lock"}


@pytest.mark.parametrize("before", [0o600, 0o640, 0o664, 0o644])
def test_a_file_keeps_its_mode(tmp_path: Path, before: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(before)
    files.save_file(path, b"new")
    assert path.read_bytes() == b"new" and mode(path) == before


def test_a_new_file_has_the_mode_that_the_mask_leaves(tmp_path: Path) -> None:
    code = "import os, sys; from dpsub import files; os.umask(0o027); files.save_file('f', b'')"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert mode(tmp_path / "f") == 0o640


def test_a_secret_ledger_has_no_lock_that_others_can_hold(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    dpsub.Ledger().save(path)
    path.chmod(0o600)
    assert main(["record", str(path), *RELEASE]) == 0
    assert (mode(path), mode(tmp_path / ".ledger.json.lock")) == (0o600, 0o600)


@as_root
def test_a_file_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    dpsub.Ledger().save(path)
    os.chown(path, 4321, 1234)
    path.chmod(0o660)
    assert main(["record", str(path), *RELEASE]) == 0
    for file in (path, tmp_path / ".ledger.json.lock"):
        found = file.stat()
        assert (found.st_uid, found.st_gid, mode(file)) == (4321, 1234, 0o660)


@as_root
@pytest.mark.parametrize(
    ("owner", "permissions", "reason"),
    [(4321, 0o666, "it belongs to another user"), (4322, 0o444, "Permission denied")],
)
def test_who_may_not_replace_a_file_is_told_so(owner: int, permissions: int, reason: str) -> None:
    """In a folder that others may write, files of theirs can be replaced, which is no permission to
    do so."""
    # not in pytest's own folders, into which only root can see
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        refused(Path(folder) / "ledger.json", owner, permissions, reason)


def refused(path: Path, owner: int, permissions: int, reason: str) -> None:
    path.write_bytes(b"old")
    os.chown(path, owner, owner)
    path.chmod(permissions)
    code = (
        "import os, sys; from dpsub import files, errors; os.setuid(4322)\n"
        "for write in (lambda: files.save_file('ledger.json', b'new'),\n"
        "              lambda: files.locked('ledger.json').__enter__()):\n"
        "    try: write()\n"
        "    except errors.DataError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=path.parent, check=True, capture_output=True, text=True
    )
    sentence = f"the file ledger.json cannot be written: {reason}; name another one"
    assert done.stdout.splitlines() == [sentence] * 2
    assert path.read_bytes() == b"old" and list(path.parent.iterdir()) == [path]


def test_what_is_no_file_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "folder.png").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s.png"))
        (tmp_path / "link.png").symlink_to("/dev/full")
        for name, kind in (
            ("pipe.png", "the pipe"),
            ("folder.png", "the folder"),
            ("s.png", "the socket"),
            ("link.png", "the device"),
        ):
            path = tmp_path / name
            before = state_of(path)
            for command in writers(path):
                assert main(command) == 2
                said = capsys.readouterr().err
                assert f"a file is needed, got {kind} {path}; name a file" in said
                assert said.count("\n") == 1
            assert state_of(path) == before


def state_of(path: Path) -> tuple[int, ...]:
    """Return what a write would change; looking at a link changes when it was last looked at."""
    found = path.lstat()
    return found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns


@pytest.mark.parametrize("device", ["/dev/full", "/dev/null", "/dev/zero"])
def test_devices_are_neither_written_nor_read(
    device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (*writers(Path(device))[:3], ["ledger", device, "--delta", "1e-5"]):
        assert main(command) == 2
        assert f"a file is needed, got the device {device}; name a file" in capsys.readouterr().err
    assert stat.S_ISCHR(os.stat(device).st_mode)


def test_too_large_a_file_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as out:
        out.truncate(2**40)  # sparse: a terabyte that takes no room
    for command in (
        ["record", str(path), *RELEASE],
        ["ledger", str(path), "--delta", "1e-5"],
        ["check", "--event", str(path), "--claimed-epsilon", "1", "--delta", "1e-5"],
    ):
        assert main(command) == 2
        assert f"at most {files.MOST_BYTES} bytes is needed, got" in capsys.readouterr().err
    path.write_bytes(b"1234")
    assert files.read_file(path, most=4) == b"1234"
    with pytest.raises(DataError, match="at most 3 bytes"):
        files.read_file(path, most=3)


def test_paths_that_no_file_can_have(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("file/more", "loop", "a\0b", "a" * 300):
        for use in (lambda at: files.save_file(at, b""), files.read_file):
            with pytest.raises(DataError, match=r"be the path of a file: .*; check the path"):
                use(tmp_path / name)
    for path in (tmp_path / "none/file", tmp_path / "dangling"):
        if path.name == "dangling":
            path.symlink_to("none/file")
        with pytest.raises(DataError, match=r"folders that exist, got .*; make .*none first"):
            files.save_file(path, b"")
        with pytest.raises(FileNotFoundError):
            files.read_file(path)


def test_a_ledger_with_two_names_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    dpsub.Ledger().save(path)
    os.link(path, tmp_path / "other.json")
    with pytest.raises(DataError, match=r"with 2 \(hard links\): one of them would change"):
        dpsub.Ledger().save(path)
