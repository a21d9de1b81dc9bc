"""Random streams keyed by what is computed, so that no result depends on cores, job order or
chunking."""

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
    """Return the generator of one role of one replicate of one cell, independent of every other
    key's.

    Parameters
    ----------
    root : the one seed of the configuration.
    experiment : its name.
    cell : fields of this role's key; "data" and "initial" get the paired ones only: all samplers
    meet the same data. role : {"data", "initial", "sample", "noise"}, what the numbers are for.
    replicate : repetition, from 0.

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
    text = json.dumps([experiment, canonical(cell), role], sort_keys=True, separators=(",", ":"))
    words = np.frombuffer(hashlib.sha256(text.encode()).digest()[:16], dtype="<u4")
    key = (*(int(word) for word in words), checks.integer("replicate", replicate, at_least=0))
    seed = checks.integer("seed", root, at_least=0, at_most=None)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


@dataclass(frozen=True)
class Streams:
    """The random streams of one experiment, by what they are for; see :func:`stream`.

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
        """For data sets; `cell` holds the paired fields only, so that all samplers meet the same
        ones."""
        return self._of("data", cell, replicate)

    def initial(self, cell: Mapping[str, Any], replicate: int) -> np.random.Generator:
        """For where iterations begin; paired as `data`."""
        return self._of("initial", cell, replicate)

    def sample(self, cell: Mapping[str, Any], replicate: int) -> np.random.Generator:
        """For what a sampler draws."""
        return self._of("sample", cell, replicate)

    def noise(self, cell: Mapping[str, Any], replicate: int) -> np.random.Generator:
        """For the noise of a mechanism."""
        return self._of("noise", cell, replicate)

    def _of(self, role: str, cell: Mapping[str, Any], replicate: int) -> np.random.Generator:
        return stream(
            self.root, experiment=self.experiment, cell=cell, role=role, replicate=replicate
        )
