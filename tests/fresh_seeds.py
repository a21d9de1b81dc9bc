"""The seed of random cases: fixed, unless the environment says another one.

A failing test prints its seed; the environment variable of the name below replays it. `make
test-slow` tries seeds that nobody has seen.
"""

from __future__ import annotations

import os

VARIABLE = "DPSUB_TEST_SEED"
_USUAL = 202647


def seed() -> int:
    """Return the seed that the environment sets, or else always the same one."""
    return int(os.environ.get(VARIABLE) or _USUAL)


def replay(seed: int, what: str) -> str:
    """Return the line that a failing case prints."""
    return f"{what}; replay with {VARIABLE}={seed}"
