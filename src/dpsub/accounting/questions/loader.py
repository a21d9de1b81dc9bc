"""Translation of a training loop's data loader to releases: its sampler, rate and steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Unpack

from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.accounting.questions.account import Account
from dpsub.accounting.questions.ledger import Ledger
from dpsub.accounting.questions.question import WidthKeywords
from dpsub.accounting.release import Release
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.sampling import Deterministic, Poisson, Shuffle, Wr

_FIXED_SIZE = (
    "rate and divisor may depend on the number of records, so the guarantee is for data sets of "
    "one public size: zero_out, the relation whose numbers compare with those of Opacus"
)
_ONE_SIDED = (
    "the lower end is trivial: the bound is for an order of the records that leaks at least as much"
)


@dataclass(frozen=True)
class LoaderRun:
    """A training run as the accountant sees it.

    Attributes
    ----------
    releases : tuple of Release
        Sampler, number of records, noise multiplier and steps.
    adjacency : str
        The relation of the guarantee.
    notes : tuple of str
        The decisions made, in sentences.
    """

    releases: tuple[Release, ...]
    adjacency: str
    notes: tuple[str, ...] = ()

    @property
    def steps(self) -> int:
        """Number of steps of the optimizer."""
        return sum(release.steps for release in self.releases)

    @property
    def one_sided(self) -> bool:
        """Whether only the upper end is about this run."""
        return any(release.one_sided for release in self.releases)

    def ledger(self) -> Ledger:
        """The run as a ledger, for every other question."""
        return Ledger(self.releases)

    def account(
        self,
        *,
        epsilon: ArrayLike | None = None,
        delta: ArrayLike | None = None,
        **asked: Unpack[WidthKeywords],
    ) -> Account:
        """Bound delta at `epsilon`, or epsilon at `delta`; parameters as in
        `dpsub.Ledger.account`."""
        asked.setdefault("adjacency", self.adjacency)
        return self.ledger().account(epsilon=epsilon, delta=delta, **asked)


def from_loader(
    n: int,
    batch_size: int,
    *,
    noise_multiplier: float,
    epochs: int,
    poisson: bool = False,
    shuffle: bool = False,
    replacement: bool = False,
    drop_last: bool = False,
    shuffle_buffer: int | None = None,
    accumulation: int = 1,
    ranks: int = 1,
    noise_per_rank: bool = False,
    microbatch: int = 1,
) -> LoaderRun:
    """Return the sampler, rate, steps and noise multiplier of a training loop.

    Parameters
    ----------
    n : int
        Number of records, `len(dataset)`.
    batch_size : int
        Of the loader, on one rank; with `poisson` of all ranks together.
    noise_multiplier : float
        Standard deviation of the noise on the sum of clipped gradients, over the clipping norm C.
    epochs : int
        Passes of the loader.
    poisson : bool
        Poisson samples, as by Opacus' `DPDataLoader` and `make_private`; the rate is one over the
        length of the loader.
    shuffle : bool
        A fresh random order of all records in every epoch; otherwise they keep their order.
    replacement : bool
        Each slot of a batch is drawn from all records (`RandomSampler(replacement=True)`).
    drop_last : bool
        Whether the last, smaller batch is left out.
    shuffle_buffer : int, optional
        Of `tf.data.Dataset.shuffle`: with fewer places than records the order is not uniform, and
        no amplification is claimed.
    accumulation : int
        Batches whose gradients are summed for one step with one noise.
    ranks : int
        Processes that share each epoch (`DistributedSampler`).
    noise_per_rank : bool
        Whether every rank adds independent noise of this multiplier to its own sum.
    microbatch : int
        Records whose mean gradient is clipped together; more than one is refused.

    Raises
    ------
    ArgumentError
        If the arguments are out of range or contradict each other.
    UnsupportedError
        If no theorem covers the loop.

    References
    ----------
    docs/how-to/loader.md.

    Examples
    --------
    >>> import dpsub
    >>> run = dpsub.from_loader(60_000, 256, noise_multiplier=1.1, epochs=3, poisson=True)
    >>> run.releases[0].sampler, run.steps, run.adjacency
    (Poisson(rate=0.00425531914893617), 705, 'zero_out')
    >>> run.account(delta=1e-5).kind
    'exact'
    """
    n, size = (
        checks.integer(name, value, at_least=1)
        for name, value in (("n", n), ("batch_size", batch_size))
    )
    epochs = checks.integer("epochs", epochs, at_least=1)
    parts = checks.integer("accumulation", accumulation, at_least=1)
    ranks = checks.integer("ranks", ranks, at_least=1)
    _check(poisson, shuffle, replacement, shuffle_buffer, parts, ranks, microbatch)
    noise = checks.real("noise_multiplier", noise_multiplier, above=0)
    if noise_per_rank:
        noise *= math.sqrt(ranks) * (1 - 1e-15)
    if n % ranks:
        raise UnsupportedError(
            f"n must be a multiple of ranks = {ranks}, got n = {n}: otherwise records are repeated "
            f"or left out; use {n - n % ranks} records"
        )
    share = n // ranks
    batches = share // size if drop_last else -(-share // size)
    if not batches:
        raise ArgumentError(
            f"an epoch must have a batch, got n = {n} and batch_size = {size} on {ranks} "
            "ranks with drop_last; take smaller batches"
        )
    if batches % parts:
        raise UnsupportedError(
            f"the batches of an epoch must be a multiple of accumulation = {parts}, got {batches}: "
            "otherwise a step mixes two epochs; choose another batch_size or drop_last"
        )
    if poisson:
        sampler = Poisson(1 / batches)
        release = Release(sampler, n, noise, batches * epochs)
        drawn = (
            f"Poisson samples at rate 1/{batches}, one over the length of the loader",
            _FIXED_SIZE,
        )
        return LoaderRun((release,), "zero_out", drawn)
    whole = size * parts * ranks
    if replacement:
        return _with_replacement(n, whole, n if not drop_last else n - n % whole, noise, epochs)
    left_out = n % whole if drop_last else 0
    notes = []
    if left_out:
        notes.append(f"each epoch leaves out {left_out} records")
    windowed = shuffle_buffer is not None and shuffle_buffer < n
    cut = left_out > 0
    if shuffle and not windowed:
        schedule: Shuffle | Deterministic = Shuffle(min(whole, n), cut)
        notes.append("a fresh uniform order in every epoch")
    else:
        schedule = Deterministic(min(whole, n), cut)
        notes.append(
            "the order is not uniform, so no amplification is claimed"
            if windowed
            else "a fixed order of the records"
        )
    release = replace(
        Release.of(schedule, n, noise_multiplier=noise, epochs=epochs), one_sided=windowed
    )
    return LoaderRun((release,), "zero_out", (*notes, _FIXED_SIZE, *[_ONE_SIDED] * windowed))


def _check(
    poisson: bool,
    shuffle: bool,
    replacement: bool,
    shuffle_buffer: int | None,
    accumulation: int,
    ranks: int,
    microbatch: int,
) -> None:
    kinds = [
        name
        for name, given in (
            ("poisson", poisson),
            ("shuffle", shuffle),
            ("replacement", replacement),
        )
        if given
    ]
    if len(kinds) > 1:
        raise ArgumentError(
            f"a loader has at most one of poisson, shuffle and replacement, got "
            f"{' and '.join(kinds)}; Opacus replaces a shuffled loader by Poisson samples: give "
            "poisson alone"
        )
    if shuffle_buffer is not None:
        checks.integer("shuffle_buffer", shuffle_buffer, at_least=1)
        if not shuffle:
            raise ArgumentError("shuffle_buffer is for shuffle = True, got False; give shuffle")
    if poisson and accumulation > 1:
        raise UnsupportedError(
            "the sum of several Poisson samples may hold a record more than once, got accumulation "
            f"= {accumulation} with poisson; draw larger samples, with BatchMemoryManager"
        )
    if poisson and ranks > 1:
        raise ArgumentError(
            f"Poisson samples of several ranks are one larger sample, got ranks = {ranks}; give "
            "the batch size of all ranks together, as Opacus' make_private takes it, and ranks = 1"
        )
    if checks.integer("microbatch", microbatch, at_least=1) > 1:
        raise UnsupportedError(
            "each record must be clipped by itself, got microbatch = "
            f"{microbatch}: a clipped mean depends on all its records; clip gradients of single "
            "records"
        )


def _with_replacement(n: int, whole: int, slots: int, noise: float, epochs: int) -> LoaderRun:
    """Batches of independent draws; the last one of an epoch may be smaller."""
    full, rest = divmod(slots, whole)
    releases = []
    if full:
        releases.append(Release(Wr(whole), n, noise, full * epochs))
    if rest:
        releases.append(Release(Wr(rest), n, noise, epochs))
    return LoaderRun(
        tuple(releases),
        "substitute",
        (
            "every slot is drawn from all records",
            "a record may be several times in a batch: proved for the replacement of a record",
        ),
    )
