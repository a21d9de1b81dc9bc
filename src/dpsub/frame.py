"""The frame: the records that a sampler draws from."""

from __future__ import annotations

from dataclasses import dataclass

from dpsub import checks


@dataclass(frozen=True)
class Frame:
    """The n records, known to the sampler by their indices 0..n-1.

    Parameters
    ----------
    n : int
        Number of records, at least 1.

    Raises
    ------
    ArgumentError
        If n < 1.
    """

    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.integer("n", self.n, at_least=1))
