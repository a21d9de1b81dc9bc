"""The seed of random cases: fixed, unless the environment says another one.

A failing test prints its seed; the environment variable of the name below replays it. `make
test-slow` tries seeds that nobody has seen.
"""

from __future__ import annotations

import os

VARIABLE = "DPSUB_TEST_SEED"
_USUAL = 202647


def seed() -> int:
    """What the environment says, else always the same."""
    return int(os.environ.get(VARIABLE) or _USUAL)


def replay(seed: int, what: str) -> str:
    """What a failing case prints."""
    return f"{what}; replay with {VARIABLE}={seed}"
