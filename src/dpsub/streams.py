"""Random streams keyed by their purpose: no result depends on cores, job order or chunking."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsub import checks

ROLES = ("data", "initial", "sample", "noise")


def canonical(value: Any) -> Any:
    """Reduce `value` to plain JSON types; 1, 1.0 and ``np.int64(1)`` become the same integer."""
    if isinstance(value, Mapping):
        return {str(key): canonical(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [canonical(item) for item in value]
    if isinstance(value, np.ndarray):
        return canonical(value.tolist())
    if value is None or isinstance(value, str):
        return str(value) if isinstance(value, str) else None
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    number = checks.real("a number in a cell", value)
    return int(number) if number.is_integer() else number


def stream(
    root: int, *, experiment: str, cell: Mapping[str, Any], role: str, replicate: int
) -> np.random.Generator:
    """Return the generator for one role of one replicate of one cell.

    Generators of different keys are independent.

    Parameters
    ----------
    root : int
        The seed of the configuration.
    experiment : str
        Name of the experiment.
    cell : mapping
        Fields of the key. For "data" and "initial" these are the paired fields only, so that all
        samplers get the same data.
    role : {"data", "initial", "sample", "noise"}
        Use of the numbers.
    replicate : int
        Repetition, from 0.

    Examples
    --------
    >>> key = {"experiment": "demo", "cell": {"n": 100}, "role": "noise"}
    >>> first = stream(1, **key, replicate=0).random()
    >>> first == stream(1, **key, replicate=0).random()  # the key decides, not the order of calls
    True
    >>> first == stream(1, **key, replicate=1).random()
    False
    """
    checks.one_of("role", role, ROLES)
    # 128 bits of the key's digest: two of a run's keys practically never share a stream.
    text = json.dumps([experiment, canonical(cell), role], sort_keys=True, separators=(",", ":"))
    words = np.frombuffer(hashlib.sha256(text.encode()).digest()[:16], dtype="<u4")
    key = (*(int(word) for word in words), checks.integer("replicate", replicate, at_least=0))
    seed = checks.integer("seed", root, at_least=0, at_most=None)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


@dataclass(frozen=True)
class Streams:
    """The random streams of one experiment by their role; see :func:`stream`.

    Parameters
    ----------
    root : int
        The one seed of the configuration.
    experiment : str

    Examples
    --------
    >>> drawn = Streams(1, "demo").noise({"n": 100}, 0).random()
    >>> drawn == stream(1, experiment="demo", cell={"n": 100}, role="noise", replicate=0).random()
    True
    """

    root: int
    experiment: str

    def data(self, cell: Mapping[str, Any], replicate: int) -> np.random.Generator:
        """Stream for data sets; `cell` has the paired fields only, so that samplers share them."""
        return self._of("data", cell, replicate)

    def initial(self, cell: Mapping[str, Any], replicate: int) -> np.random.Generator:
        """Stream for the initial values of iterations; paired as `data`."""
        return self._of("initial", cell, replicate)

    def sample(self, cell: Mapping[str, Any], replicate: int) -> np.random.Generator:
        """Stream for the draws of a sampler."""
        return self._of("sample", cell, replicate)

    def noise(self, cell: Mapping[str, Any], replicate: int) -> np.random.Generator:
        """Stream for the noise of a mechanism."""
        return self._of("noise", cell, replicate)

    def _of(self, role: str, cell: Mapping[str, Any], replicate: int) -> np.random.Generator:
        return stream(
            self.root, experiment=self.experiment, cell=cell, role=role, replicate=replicate
        )
