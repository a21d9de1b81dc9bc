"""The batches that a loader makes in one epoch, and the steps that a loop makes of them."""

from __future__ import annotations

from dataclasses import dataclass

from dpsub import checks
from dpsub.errors import ArgumentError, UnsupportedError

REMAINDERS = ("step", "drop")
"""What becomes of the batches at the end of an epoch that are too few for `accumulation`: a step of
their own, or none."""


@dataclass(frozen=True)
class LoaderBatches:
    """The batches that a loader makes in one epoch.

    Attributes
    ----------
    n : int
        Number of records; of weighted draws the number of draws.
    size : int
        Of a batch, on one rank.
    order : {"poisson", "shuffle", "replacement", "fixed"}
    drop_last : bool
        Whether the last, smaller batch of each rank is left out.
    ranks : int
        Processes that share each epoch.
    drop_uneven : bool
        Whether records beyond a multiple of `ranks` are left out; otherwise there must be none.
    rate : float, optional
        Of Poisson samples, where it is known; otherwise one over the number of batches.
    of_rate : int, optional
        Number of batches of samples with a rate.
    largest_weight : float, optional
        Of weighted draws.
    n_weights : int, optional
        Number of records of weighted draws.
    """

    n: int
    size: int
    order: str
    drop_last: bool = False
    ranks: int = 1
    drop_uneven: bool = False
    rate: float | None = None
    of_rate: int | None = None
    largest_weight: float | None = None
    n_weights: int | None = None

    def __post_init__(self) -> None:
        for name, shown in (("n", "n"), ("size", "batch_size"), ("ranks", "ranks")):
            object.__setattr__(self, name, checks.integer(shown, getattr(self, name), at_least=1))
        if not self.count:
            raise ArgumentError(
                f"an epoch must have a batch, got n = {self.n} and batch_size = {self.size} on "
                f"{self.ranks} ranks with drop_last; take smaller batches"
            )

    @property
    def _share(self) -> int:
        """Number of records of one rank."""
        return self.n // self.ranks

    @property
    def count(self) -> int:
        """Number of batches of one rank in an epoch."""
        if self.of_rate is not None:
            return self.of_rate
        return self._share // self.size if self.drop_last else -(-self._share // self.size)

    def steps(self, accumulation: int, remainder: str | None) -> Steps:
        """Return the steps of an epoch, each of `accumulation` batches of every rank.

        Raises
        ------
        UnsupportedError
            If a record may be in two steps of an epoch, or a step in two epochs.
        """
        over = self.count % accumulation
        if self.n % self.ranks and not self.drop_uneven:
            raise UnsupportedError(
                f"n must be a multiple of ranks = {self.ranks}, got n = {self.n}: otherwise "
                "DistributedSampler repeats records; have it drop them and give drop_last, or "
                f"{self.n - self.n % self.ranks} records"
            )
        if over and remainder is None:
            raise UnsupportedError(
                f"the batches of an epoch must be a multiple of accumulation = {accumulation}, got "
                f"{self.count}: otherwise a step mixes two epochs; let the loop end each epoch "
                "with a step of the remaining batches, or drop them, and give remainder, step or "
                "drop"
            )
        used = self._share * self.ranks
        if self.drop_last:
            used = self.count * self.size * self.ranks
        whole = self.size * accumulation * self.ranks
        if over and remainder == "drop":
            used = self.count // accumulation * whole
            if not used:
                raise ArgumentError(
                    f"an epoch must have a step, got {self.count} batches, accumulation = "
                    f"{accumulation} and remainder drop; accumulate fewer batches"
                )
        return Steps(self.n, min(whole, used), used)


@dataclass(frozen=True)
class Steps:
    """The steps of one epoch: `used` of `n` records in steps of `size`, the last one smaller where
    they do not divide."""

    n: int
    size: int
    used: int

    @property
    def left_out(self) -> int:
        """Number of records that are in no step of an epoch."""
        return self.n - self.used

    @property
    def count(self) -> int:
        """Number of steps."""
        return -(-self.used // self.size)

    @property
    def has_both(self) -> bool:
        """Whether records are left out although the last step is smaller than the others."""
        return self.left_out > 0 and self.used % self.size > 0
