"""Random streams keyed by what is computed, so that no result depends on cores, job order or chunking."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
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


def stream(root: int, *, experiment: str, cell: Mapping[str, Any], role: str, replicate: int) -> np.random.Generator:
    """Return the generator of one role of one replicate of one cell, independent of every other key's.

    Parameters
    ----------
    root : the one seed of the configuration.
    experiment : its name.
    cell : fields of this role's key; "data" and "initial" get the paired ones only: all samplers meet the same data.
    role : {"data", "initial", "sample", "noise"}, what the numbers are for.
    replicate : repetition, from 0.

    Examples
    --------
    >>> key = {"experiment": "demo", "cell": {"n": 100}, "role": "noise"}
    >>> first = stream(1, **key, replicate=0).random()
    >>> first == stream(1, **key, replicate=0).random()     # the key decides, not the order of calls
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
