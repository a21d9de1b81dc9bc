"""The key decides the stream."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from dpsub.errors import ArgumentError
from dpsub.streams import ROLES, canonical, stream

KEY = {"experiment": "table", "cell": {"b": 10, "scheme": "wr"}, "role": "sample", "replicate": 3}


def first(root: int = 1, **changes: object) -> int:
    return int(stream(root, **{**KEY, **changes}).integers(2**63))  # type: ignore[arg-type]


def test_same_key_same_stream() -> None:
    assert first() == first()
    assert first(cell={"scheme": "wr", "b": 10}) == first()


@pytest.mark.parametrize("b", [10.0, np.int64(10), np.float64(10), np.float32(10)])
def test_types_of_numbers_do_not_matter(b: object) -> None:
    assert first(cell={"b": b, "scheme": "wr"}) == first()


@pytest.mark.parametrize(
    "changes",
    [
        {"experiment": "tables"},
        {"cell": {"b": 11, "scheme": "wr"}},
        {"cell": {"b": 10.5, "scheme": "wr"}},
        {"cell": {"b": "10", "scheme": "wr"}},
        {"cell": {"scheme": "wr"}},
        {"role": "noise"},
        {"replicate": 4},
        {"root": 2},
    ],
)
def test_every_part_of_the_key_matters(changes: dict[str, object]) -> None:
    assert first(**changes) != first()  # type: ignore[arg-type]


def test_many_keys_many_streams() -> None:
    seen = {
        first(role=role, replicate=r, cell={"b": b})
        for role in ROLES
        for r in range(30)
        for b in range(30)
    }
    assert len(seen) == len(ROLES) * 900


def test_key_is_hashed_as_documented() -> None:
    text = '["table",{"b":10,"scheme":"wr"},"sample"]'
    words = np.frombuffer(hashlib.sha256(text.encode()).digest()[:16], dtype="<u4").tolist()
    expected = np.random.default_rng(np.random.SeedSequence(1, spawn_key=(*words, 3)))
    before = np.random.get_state(legacy=False)["state"]["key"].copy()  # noqa: NPY002 (it is the global state that is looked at)
    assert stream(1, **KEY).random(5).tolist() == expected.random(5).tolist()  # type: ignore[arg-type]
    assert np.array_equal(before, np.random.get_state(legacy=False)["state"]["key"])  # noqa: NPY002


def test_other_processes_agree() -> None:
    """Strings hash differently in every process; keys must not."""
    code = (
        "from dpsub.streams import stream; rng = stream(1, experiment='table', cell={'scheme': "
        "'wr', 'b': 10}, role='sample', replicate=3); print(rng.integers(2**63))"
    )
    for seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert int(done.stdout) == first()


def test_canonical_values() -> None:
    value = {
        "a": np.array([1.0, 2.5]),
        "b": (1, None, "x"),
        3: np.bool_(True),
        "c": {"d": np.float32(0.5)},
    }
    assert canonical(value) == {"a": [1, 2.5], "b": [1, None, "x"], "3": True, "c": {"d": 0.5}}
    assert type(canonical(1.0)) is int and type(canonical(True)) is bool


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"role": "samples"}, "^unknown role 'samples'; did you mean 'sample'[?]$"),
        ({"replicate": -1}, "^replicate must be at least 0, got replicate = -1$"),
        ({"root": -1}, "^seed must be at least 0, got seed = -1$"),
        ({"cell": {"b": float("nan")}}, "^a number in a cell must be finite"),
        ({"cell": {"b": object()}}, "^a number in a cell must be a number"),
    ],
)
def test_what_is_refused(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        first(**changes)  # type: ignore[arg-type]
