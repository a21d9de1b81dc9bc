"""A board that prints the lines of the benchmark, each next to the bound that it is meant to
keep."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
Clock = Callable[[], float]


class Board:
    """Prints lines and remembers whether all bounds were kept.

    A `short` benchmark is as long as it takes to know that every line can be made: each is measured
    once, at small sizes, and no bound is judged.
    """

    def __init__(self, *, short: bool = False) -> None:
        self.short, self.kept = short, True

    def line(self, what: str, ours: float, peer: str, theirs: float, *, at_most: float) -> None:
        """Print a line of `ours` and `theirs` in seconds; the ratio ours / theirs must be at most
        `at_most`."""
        # a clock that ticks slowly may see nothing of a short piece of work
        ratio = ours / theirs if theirs else float("nan")
        print(
            f"{what:<44} {ours * 1e6:12.2f} us  {peer:<38} {theirs * 1e6:12.2f} us  "
            f"ratio {ratio:8.4f}  bound {at_most:g}  "
            f"{self._judged(ratio <= at_most)}",
            flush=True,
        )

    def verdict(self, what: str, words: str, value: float, at_most: float) -> None:
        """Print a line that is not a ratio of times."""
        print(
            f"{what:<74} {words}  bound {at_most:g}  {self._judged(value <= at_most)}", flush=True
        )

    def width(
        self, what: str, low: float, high: float, *, at_most: float, relative: bool = False
    ) -> None:
        """Print a line on the distance of the ends of an answer."""
        gap = (high - low) / high if relative else high - low
        words = f"{'relative ' if relative else ''}width {gap:.2e}"
        self.verdict(f"{what} [{low:.7g}, {high:.7g}]", words, gap, at_most)

    def _judged(self, good: bool) -> str:
        if self.short:
            return "not judged"
        self.kept &= good
        return "kept" if good else "BROKEN"

    def sized(self, whole: T, short: T) -> T:
        """Return the size of a piece of work."""
        return short if self.short else whole

    def best(
        self, work: Callable[[], object], repeats: int, clock: Clock = time.process_time
    ) -> float:
        """Return the shortest of several runs, in seconds of the processor or of another clock."""
        return self.timed(work, repeats, clock)[0]

    def timed(
        self, work: Callable[[], T], repeats: int = 1, clock: Clock = time.process_time
    ) -> tuple[float, T]:
        """Return the shortest of several runs, in seconds of the processor or of another clock, and
        the answer of the last."""
        times = []
        for _ in range(self.sized(repeats, 1)):
            begin = clock()
            answer = work()
            times.append(clock() - begin)
        return min(times), answer
