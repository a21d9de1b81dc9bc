"""Limit of the work of a proof: it is counted from sizes before it is done, never measured, so that
a verdict does not depend on the machine.

A file that makes this program run without end proves nothing, and neither does one that is not
covered: both counts below only stop.
"""

from balls import NotCovered

# In operations on balls; a processor does about a million a second.
MOST = 3_000_000_000
LONGEST = 2**22  # masses of a law on all points of its grid: a few gigabytes at most

_spent = 0


def begin() -> None:
    """Begin to count the work of a new bound."""
    global _spent
    _spent = 0


def spend(count: int, what: str) -> None:
    """Count a piece of work before it is done; refuse it beyond the limit of all."""
    global _spent
    _spent += int(count)
    if _spent > MOST:
        raise NotCovered(f"too large: {what} make {_spent} operations, of at most {MOST}")


def fits(count: int, most: int, what: str) -> None:
    """Refuse a size beyond a limit of its own."""
    if count > most:
        raise NotCovered(f"too large: {count} {what}, of at most {most}")
