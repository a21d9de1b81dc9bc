"""Seeds that are new every week, so that random cases do not stay the same for ever, and the same within a week.

A failing test prints its seed; the environment variable of the name below replays it.
"""

from __future__ import annotations

import datetime
import os

VARIABLE = "DPSUB_TEST_SEED"


def weekly_seed() -> int:
    """Year and week of the ISO calendar, in UTC, as one number; or what the environment says."""
    given = os.environ.get(VARIABLE)
    if given:
        return int(given)
    year, week, _ = datetime.datetime.now(datetime.UTC).isocalendar()
    return 100 * year + week


def replay(seed: int, what: str) -> str:
    """What a failing case prints."""
    return f"{what}; replay with {VARIABLE}={seed}"
