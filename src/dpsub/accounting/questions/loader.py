"""Translation of a training loop's data loader to releases: its sampler, rate and steps."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from typing import Any, Never, Unpack

from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.accounting.questions.account import Account
from dpsub.accounting.questions.batches import REMAINDERS, LoaderBatches, Steps
from dpsub.accounting.questions.ledger import Ledger
from dpsub.accounting.questions.question import WidthKeywords
from dpsub.accounting.questions.torch_loader import batches_of
from dpsub.accounting.questions.words import near, plural
from dpsub.accounting.release import Release, noise_of, one_noise
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.sampling import Deterministic, PersistentShuffle, Poisson, Shuffle, WeightedWr, Wr

_FIXED_SIZE = (
    "rate and divisor may depend on the number of records, so the guarantee is for data sets of "
    "one public size: zero_out, the relation whose numbers compare with those of Opacus"
)
_SET_EPOCH = (
    "DistributedSampler draws a fresh order only after set_epoch, which must be called before "
    "every epoch"
)
_ORDERS = {
    False: "a fresh uniform order in every epoch",
    True: "one uniform order for all epochs",
}
"""Notes on a random order, by whether it is kept."""
_ONE_NOISE = (
    "one noise of this multiplier on the sum over all ranks; where every rank adds its own, give "
    "noise_per_rank"
)
_ONE_SIDED = (
    "the lower bound is trivial: the upper one is for an order of the records that leaks at "
    "least as much"
)
_WEIGHTS = (
    "the bound is that of the heaviest record, for weights that are public and stay; weights from "
    "counts of classes stay where a record is set to 0, not where its class is another one"
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
    training : str
        The training in words, where it ends within the last epoch of the releases.
    """

    releases: tuple[Release, ...]
    adjacency: str
    notes: tuple[str, ...] = ()
    training: str = ""

    @property
    def steps(self) -> int:
        """Number of steps of the optimizer."""
        return sum(release.steps for release in self.releases)

    @property
    def one_sided(self) -> bool:
        """Whether only the upper bound is about this run."""
        return any(release.one_sided for release in self.releases)

    def ledger(self) -> Ledger:
        """The run as a ledger, for every other question; a ledger has no relation of its own, so
        give `adjacency` with each."""
        return Ledger(self.releases)

    def account(
        self,
        *,
        epsilon: ArrayLike | None = None,
        delta: ArrayLike | None = None,
        **asked: Unpack[WidthKeywords],
    ) -> Account:
        """Bound delta at `epsilon`, or epsilon at `delta`; parameters as in
        `dpsub.Ledger.account`. The notes are among its conditions."""
        asked.setdefault("adjacency", self.adjacency)
        found = self.ledger().account(epsilon=epsilon, delta=delta, **asked)
        assert found.asked is not None
        return replace(
            found,
            conditions=(*found.conditions, *self.notes),
            asked=replace(found.asked, training=self.training),
        )


def from_loader(
    n: Any,
    batch_size: int | None = None,
    *,
    noise_multiplier: float | None = None,
    sigma: float | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    poisson: bool = False,
    shuffle: bool = False,
    replacement: bool = False,
    drop_last: bool = False,
    shuffle_buffer: int | None = None,
    same_order: bool = False,
    accumulation: int = 1,
    remainder: str | None = None,
    ranks: int = 1,
    noise_per_rank: bool = False,
    microbatch: int = 1,
    steps_per_batch: int = 1,
    records_per_user: int | None = None,
    **others: Never,
) -> LoaderRun:
    """Return the sampler, rate, steps and noise multiplier of a training loop.

    Parameters
    ----------
    n : int or DataLoader
        Number of records, `len(dataset)`; or the loader of PyTorch or Opacus itself, which says
        `batch_size`, `shuffle`, `replacement`, `drop_last` and `ranks`.
    batch_size : int
        Of the loader, on one rank; with `poisson` of all ranks together.
    noise_multiplier, sigma : float
        One of them: standard deviation of the noise on the sum of clipped gradients, over the
        clipping norm C.
    epochs, steps : int
        One of them: passes of the loader, or steps of a run that may stop within an epoch. Steps
        of a schedule are rounded up to whole epochs, which tell at least as much of a record; the
        lower bound is then trivial.
    poisson : bool
        Poisson samples, as by Opacus' `DPDataLoader` and `make_private`; the rate is one over the
        length of the loader.
    shuffle : bool
        A random order of all records; otherwise they keep their order.
    replacement : bool
        Each slot of a batch is drawn from all records (`RandomSampler(replacement=True)`).
    drop_last : bool
        Whether the last, smaller batch is left out; on several ranks by `DistributedSampler`, too.
    shuffle_buffer : int, optional
        Of `tf.data.Dataset.shuffle`: with fewer places than records the order is not uniform, and
        no amplification is claimed.
    same_order : bool
        Whether the random order of a shuffled loader is drawn once and kept for all epochs: with
        the same seed before every epoch, by `DistributedSampler` without `set_epoch`, or by tf.data
        with `reshuffle_each_iteration=False`.
    accumulation : int
        Batches whose gradients are summed for one step with one noise.
    remainder : {"step", "drop"}, optional
        What the loop does at the end of an epoch with fewer batches than `accumulation`: a step of
        their own, or none. A loop that carries them into the next epoch is refused.
    ranks : int
        Processes that share each epoch (`DistributedSampler`).
    noise_per_rank : bool
        Whether every rank adds independent noise of this multiplier to its own sum.
    microbatch : int
        Records whose mean gradient is clipped together; more than one is refused.
    steps_per_batch : int
        Steps of the optimizer on each batch, with noise of their own, before the next one comes.
    records_per_user : int, optional
        Of a data set of `n` users: number of records of a user, at most, that enter a batch with
        the user.

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
    for name in others:
        raise TypeError(
            f"unexpected keyword {name!r}; from_loader describes the training, and its result is "
            "asked: dpsub.from_loader(...).account(delta=1e-5)"
        )
    parts = checks.integer("accumulation", accumulation, at_least=1)
    uses = checks.integer("steps_per_batch", steps_per_batch, at_least=1)
    if remainder is not None:
        remainder = checks.named("remainder", remainder, REMAINDERS)
    ranks = checks.integer("ranks", ranks, at_least=1)
    is_number = n is None or isinstance(n, numbers.Number | str)
    if is_number:
        _check_order(poisson, shuffle, replacement, shuffle_buffer)
        if batch_size is None:
            raise ArgumentError("batch_size is needed next to n, got none; give batch_size")
        order = "poisson" if poisson else "replacement" if replacement else "fixed"
        order = "shuffle" if shuffle else order
        batches = LoaderBatches(n, batch_size, order, drop_last, ranks, drop_uneven=drop_last)
    else:
        _check_said_once(
            batch_size=batch_size,
            shuffle=shuffle,
            replacement=replacement,
            drop_last=drop_last,
            shuffle_buffer=shuffle_buffer,
            ranks=ranks > 1,
        )
        batches = batches_of(n, poisson=poisson)
    if checks.boolean("same_order", same_order) and batches.order != "shuffle":
        raise ArgumentError("same_order is for a shuffled loader; give shuffle as well")
    _check_sums(batches, parts, microbatch)
    given = noise_of("gaussian", one_noise(noise_multiplier, sigma))
    noise = checks.real("noise_multiplier", given, above=0)
    if noise_per_rank:
        noise *= math.sqrt(batches.ranks) * (1 - 1e-15)
    taken = batches.steps(parts, remainder)
    samples = steps
    if steps is not None:
        samples = -(-checks.integer("steps", steps, at_least=1) // uses)
    is_windowed = shuffle_buffer is not None and shuffle_buffer < batches.n
    if batches.order == "poisson":
        run = _poisson(batches, noise, _Length.of(epochs, samples, batches.count, uses))
    elif batches.order == "replacement":
        length = _Length.of(epochs, samples, taken.count, uses)
        run = _with_replacement(batches, taken, noise, length)
    else:
        length = _Length.of(epochs, samples, taken.count, uses)
        shuffled = PersistentShuffle if same_order else Shuffle
        run = _in_an_order(batches, taken, noise, length, is_windowed, shuffled)
    if batches.ranks > 1 and not noise_per_rank:
        run = replace(run, notes=(*run.notes, _ONE_NOISE))
    if records_per_user is not None:
        run = _of_users(run, records_per_user)
    return run if uses == 1 else _used(run, uses, is_cut=(steps or 0) % uses > 0)


@dataclass(frozen=True)
class _Length:
    """How long a run is: whole epochs, and the steps among them, where it stops within the last;
    steps with a batch each, which is used so often."""

    epochs: int
    steps: int
    per_epoch: int
    uses: int

    @classmethod
    def of(cls, epochs: int | None, steps: int | None, per_epoch: int, uses: int) -> _Length:
        if (epochs is None) == (steps is None):
            got = "neither" if epochs is None else "both"
            raise ArgumentError(f"exactly one of epochs and steps is needed, got {got}; give one")
        if steps is None:
            epochs = checks.integer("epochs", epochs, at_least=1)
            return cls(epochs, epochs * per_epoch, per_epoch, uses)
        steps = checks.integer("steps", steps, at_least=1)
        return cls(-(-steps // per_epoch), steps, per_epoch, uses)

    @property
    def is_cut(self) -> bool:
        """Whether the run stops within an epoch."""
        return self.steps < self.epochs * self.per_epoch

    @property
    def training(self) -> str:
        """The run in words, where it stops within an epoch."""
        if not self.is_cut:
            return ""
        epochs = plural(self.epochs, "whole epoch")
        return f"A training of {self.steps * self.uses} steps, accounted as {epochs}"

    def notes(self) -> tuple[str, ...]:
        if not self.is_cut:
            return ()
        per_epoch = self.per_epoch * self.uses
        return (
            f"{self.steps * self.uses} steps end within an epoch of {per_epoch}: accounted as "
            f"{plural(self.epochs, 'whole epoch')}, {self.epochs * per_epoch} steps, which tell at "
            "least as much, so the lower bound is trivial",
        )


def _poisson(batches: LoaderBatches, noise: float, length: _Length) -> LoaderRun:
    rate = 1 / batches.count if batches.rate is None else batches.rate
    shown = f"1/{batches.count}, one over the length of the loader"
    if batches.rate is not None:
        shown = f"{near(rate)}, that of Opacus' sampler"
    release = Release(Poisson(rate), batches.n, noise, length.steps)
    return LoaderRun((release,), "zero_out", (f"Poisson samples at rate {shown}", _FIXED_SIZE))


def _in_an_order(
    batches: LoaderBatches,
    taken: Steps,
    noise: float,
    length: _Length,
    is_windowed: bool,
    shuffled: type[Shuffle],
) -> LoaderRun:
    """Batches cut from an order of the records, which is random or not."""
    notes = [f"each epoch leaves out {taken.left_out} records"] if taken.left_out else []
    is_shuffled = batches.order == "shuffle" and not is_windowed
    # Theorems are about a last step that is smaller, or about records that are left out. An epoch
    # with both tells at most as much as its order, revealed, with all records in its steps.
    is_stood_for = is_windowed or (is_shuffled and taken.has_both)
    cuts = taken.left_out > 0 and not taken.has_both
    schedule: Shuffle | Deterministic
    if is_shuffled and not taken.has_both:
        schedule = shuffled(taken.size, cuts)
        notes.append(_ORDERS[shuffled.one_plan])
        if batches.ranks > 1 and not shuffled.one_plan:
            notes.append(_SET_EPOCH)
    else:
        schedule = Deterministic(taken.size, cuts)
        notes.append(_WHY_FIXED[is_windowed, is_shuffled])
    release = replace(
        Release.of(schedule, batches.n, noise_multiplier=noise, epochs=length.epochs),
        one_sided=is_stood_for or length.is_cut,
    )
    notes += [*length.notes(), _FIXED_SIZE, *[_ONE_SIDED] * is_stood_for]
    return LoaderRun((release,), "zero_out", tuple(notes), length.training)


_WHY_FIXED = {
    (True, False): "the order is not uniform, so no amplification is claimed",
    (False, True): "no theorem on shuffling covers epochs that leave records out and end in a "
    "smaller step, so no amplification is claimed",
    (False, False): "a fixed order of the records, neither shuffled nor Poisson samples",
}
"""Notes, by whether the order comes from a small buffer, and whether it is shuffled."""


def _with_replacement(
    batches: LoaderBatches, taken: Steps, noise: float, length: _Length
) -> LoaderRun:
    """Batches of independent draws; the last one of an epoch may be smaller."""
    full, rest = divmod(taken.used, taken.size)
    # the smaller steps stand at the ends of epochs, also in a run that stops within one
    smaller = length.steps // length.per_epoch if rest else 0
    kinds = [(taken.size, length.steps - smaller), (rest, smaller)]
    weight, n = batches.largest_weight, batches.n_weights or taken.n
    releases = [
        Release(Wr(size) if weight is None else WeightedWr(size, weight), n, noise, steps)
        for size, steps in kinds
        if steps
    ]
    assert full or rest
    drawn = "every slot is drawn from all records: a record may be several times in a batch"
    notes = (drawn, _FIXED_SIZE) if weight is None else (drawn, _WEIGHTS, _FIXED_SIZE)
    return LoaderRun(tuple(releases), "zero_out", notes)


def _of_users(run: LoaderRun, records_per_user: int) -> LoaderRun:
    """The same batches of users."""
    releases = tuple(
        replace(release, records_per_user=records_per_user) for release in run.releases
    )
    note = "users are drawn, n of them in all, each with some records: one user is protected"
    return replace(run, releases=releases, notes=(*run.notes, note))


def _used(run: LoaderRun, uses: int, *, is_cut: bool) -> LoaderRun:
    """The same batches, with several steps on each; the last one may have fewer."""
    notes = [f"{uses} steps on each batch"]
    releases = []
    for release in run.releases:
        releases.append(
            replace(
                release,
                steps=release.steps * uses,
                one_sided=release.one_sided or is_cut,
                releases_per_sample=uses,
            )
        )
    if is_cut:
        notes.append("the last batch has fewer steps, and is accounted with as many as the others")
    return replace(run, releases=tuple(releases), notes=(*run.notes, *notes))


def _check_said_once(**given: Any) -> None:
    """Raise ArgumentError for an argument next to a loader that says it itself."""
    for name, value in given.items():
        if value:
            raise ArgumentError(
                f"a loader says {name} itself, got {name} as well; drop it, or give n and "
                "batch_size in place of the loader"
            )


def _check_order(
    poisson: bool, shuffle: bool, replacement: bool, shuffle_buffer: int | None
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
            raise ArgumentError("shuffle_buffer is for a shuffled loader; give shuffle as well")


def _check_sums(batches: LoaderBatches, accumulation: int, microbatch: int) -> None:
    is_poisson = batches.order == "poisson"
    if is_poisson and accumulation > 1:
        raise UnsupportedError(
            "the sum of several Poisson samples may hold a record more than once, got accumulation "
            f"= {accumulation} with poisson; draw larger samples, with BatchMemoryManager"
        )
    if is_poisson and batches.ranks > 1:
        raise ArgumentError(
            "Poisson samples of several ranks are one larger sample, got ranks = "
            f"{batches.ranks}; give the batch size of all ranks together, as Opacus' make_private "
            "takes it, and ranks = 1"
        )
    if checks.integer("microbatch", microbatch, at_least=1) > 1:
        raise UnsupportedError(
            "each record must be clipped by itself, got microbatch = "
            f"{microbatch}: a clipped mean depends on all its records; clip gradients of single "
            "records"
        )
