"""Audits: a known attack is carried out on real draws of a sampler, to bound delta from below.

An account computes the value of an attack from the law of a record's multiplicity. An audit draws
index sets with the sampler itself, sums the records of two explicit data sets, adds noise, and
counts how often the likelihood ratio test accepts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Unpack

import numpy as np

from dpsub import checks
from dpsub.accounting.engine import work
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.engine.privacy_events import PairEvent, StatisticEvent
from dpsub.accounting.engine.statistic import Statistic
from dpsub.accounting.games.static import ANY_N, EpochAttack, StepAttack
from dpsub.accounting.questions.account import Account
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.questions.question import AccountKeywords, Question, with_tight
from dpsub.accounting.questions.refinement import AccountRefinement
from dpsub.accounting.release import Release
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.sampling.base import Sampler
from dpsub.sampling.frame import Frame
from dpsub.sampling.laws import clopper_pearson
from dpsub.sampling.schedules import Schedule
from dpsub.streams import stream

MOST_DRAWS = 10**8
"""Largest number of runs on each data set, for whose losses there is memory."""
_MOST_INDICES = 10**8  # indices in one sample, for the same reason
_MOST_WORK = 10**12  # indices in all: hours
_INDICES_A_BLOCK = 2_000_000
# indices and draws where no number of draws is given
_WORK, _FEWEST, _MOST = 100_000_000, 100, 100_000
_WORK_OF_EPOCHS = 2e7  # where the loss of an epoch takes more than its draws


def static_attack(proof: Proof) -> StepAttack | EpochAttack:
    """The static attack on one kind of release (docs/proofs/attacks.md)."""
    [case] = proof.cases
    if case.static is None:
        name = proof.releases[0].sampler.name
        if proof.releases[0].one_sided:
            raise UnsupportedError(
                f"an audit plays an attack on the releases, got {name} in the place of others, "
                "which tell at most as much; use account"
            )
        raise UnsupportedError(
            f"an audit needs a static attack, and none is known for {name}; use account"
        )
    return case.static()


@dataclass(frozen=True)
class MonteCarlo:
    """Confidence intervals from `draws` runs of all steps on each of the two data sets.

    Attributes
    ----------
    lower, upper : float
        Interval for delta, from the number of `hits` on the first data set: u < 1 - exp(epsilon -
        loss), u uniform. It relies on the densities that are computed, not on the sampler.
    test_hits : tuple of int
        Runs on the first and on the second data set in which the loss exceeds epsilon.
    test_lower : float
        Lower bound of P(loss > epsilon | first) - e^epsilon P(loss > epsilon | second): coarser,
        but it relies on neither.
    """

    draws: int
    seed: int
    confidence: float
    lower: float
    upper: float
    hits: int
    test_hits: tuple[int, int]
    test_lower: float


@dataclass(frozen=True, eq=False)
class Audit:
    """An attack, the delta that it attains by computation, and the result of carrying it out.

    Attributes
    ----------
    attack : StepAttack or EpochAttack
    swapped : bool
        Whether the first data set is index 1 of `attack`, in which the record is at -C or absent.
    computed : tuple of float
        Bounds on the delta that the static attack attains in this direction over all steps. The
        upper one is that of `account` if the attack uses the best statistic of an epoch and a
        coarser one is computed.
    account : Account
        Proved upper bound and the best attack known, which may be adaptive.
    shown : MonteCarlo
    quick : float
        The proved upper bound of a quick audit.
    """

    attack: StepAttack | EpochAttack
    swapped: bool
    computed: tuple[float, float]
    account: Account
    shown: MonteCarlo
    quick: float

    @property
    def consistent(self) -> bool:
        """Whether the interval overlaps that of the computed attack, and its lower limit is at most
        the proved upper bound."""
        meets = self.shown.lower <= self.computed[1] and self.computed[0] <= self.shown.upper
        return meets and max(self.shown.lower, self.shown.test_lower) <= self.account.upper


def audit(
    sampler: Sampler | Schedule | Release,
    n: int | None = None,
    *,
    epsilon: float,
    draws: int | None = None,
    seed: int = 0,
    confidence: float = 0.99,
    tight: bool | None = None,
    **described: Unpack[AccountKeywords],
) -> Audit:
    """Carry out the static attack on the sampler's own draws, and bound delta from below.

    The two data sets consist of numbers in [-C, C] and differ in one record. A run adds up the
    privacy losses of all noisy sums (for a schedule, of all epochs): the log of the density on the
    first data set over that on the second. On the first, the run is accepted with probability
    (1 - e^(epsilon - loss))+, whose mean is delta.

    Parameters
    ----------
    sampler, n, noise_multiplier, sigma, steps, epochs, mechanism, denominator, adjacency, group
        As in `dpsub.account`; Gaussian noise on sums or on sums over a fixed number alone.
    releases_per_sample, records_per_user, strategy
        As in `dpsub.account`; an audit plays one release of each sample, of single records.
    epsilon : float
        Nats, >= 0.
    draws : int, optional
        Runs of all steps on each data set; by default as many as 1e8 indices make, 2e7 of a
        schedule, from 100 to 100 000.
    seed : int
    confidence : float
        Of the intervals (Clopper and Pearson 1934), in (0, 1).
    width, effort, time_limit, quick
        As in `dpsub.account`, for the account that is compared with the attack. The first bound is
        computed, and the attack carried out, in any case.
    tight : bool, optional
        Deprecated: True asks for what is the default now.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    UnsupportedError
        If no attack and no bound are known for the sampler.

    Examples
    --------
    >>> import dpsub
    >>> played = dpsub.audit(dpsub.Wor(2), 4, noise_multiplier=1.0, epsilon=0.5, draws=2000)
    >>> played.consistent
    True
    """
    if draws is not None:
        draws = checks.integer("draws", draws, at_least=1, at_most=MOST_DRAWS)
    seed = checks.integer("seed", seed, at_least=0, at_most=None)
    confidence = checks.real("confidence", confidence, above=0, below=1)
    question = with_tight(Question.of(sampler, n, **described), tight)
    [release] = question.releases
    if (release.mechanism, release.denominator) != ("gaussian", "fixed"):
        raise UnsupportedError(
            "an audit plays Gaussian noise on sums or on sums over a fixed number, got mechanism = "
            f"{release.mechanism}, denominator = {release.denominator}; leave both as they are"
        )
    if not release.is_plain:
        raise UnsupportedError(
            f"an audit draws records, and a sample for each release, got {release}; audit the "
            "release to which it amounts"
        )
    if isinstance(release.sampler, Schedule) and (release.n or ANY_N) > _MOST_INDICES:
        raise ArgumentError(
            f"an audit simulates at most {_MOST_INDICES:.0e} records per epoch, got n = "
            f"{release.n}; audit a smaller case"
        )
    with question.proof() as proof:
        target = Target(epsilon=epsilon, width=proof.width)
        refinement = AccountRefinement(proof, question.width)
        with work.share(1 / 2):
            [first_bound] = replace(refinement, quick=True).accounts([target], question.budget)
        account = first_bound
        if not question.quick:
            [account] = refinement.accounts([target], question.budget)
    attack = static_attack(proof)
    composition = proof.composition
    if isinstance(attack, StepAttack):
        # the accountant's attack may be another one, adaptive for instance
        pair = attack.pair
        event = StatisticEvent(pair) if isinstance(pair, Statistic) else PairEvent(pair)
        composition = Composition([(event, release.steps)])
    worth = {
        swapped: _worth(composition, epsilon, swapped, account.upper)
        for swapped in composition.directions
    }
    swapped = max(worth, key=lambda direction: worth[direction][0])
    play = _Play(release, attack, seed)
    if draws is None:
        draws = play.affordable_draws()
    play.check_work(draws)
    losses = play.losses(0, draws), play.losses(1, draws)
    first, second = (-losses[1], -losses[0]) if swapped else losses
    shown = _counted(first, second, epsilon, seed, confidence)
    return Audit(attack, swapped, worth[swapped], account, shown, float(first_bound.upper))


def _counted(
    first: np.ndarray, second: np.ndarray, epsilon: float, seed: int, confidence: float
) -> MonteCarlo:
    """Return the lower bound that losses of runs on the first and the second data set show."""
    draws = len(first)
    uniform = stream(seed, experiment="audit", cell={}, role="noise", replicate=2).random(draws)
    acceptance = -np.expm1(np.minimum(epsilon - first, 0.0))
    hits = int(np.count_nonzero(uniform < acceptance))
    lower, upper = clopper_pearson(hits, draws, confidence)
    test_hits = (int(np.count_nonzero(first > epsilon)), int(np.count_nonzero(second > epsilon)))
    on_first, on_second = (clopper_pearson(count, draws, confidence) for count in test_hits)
    # each limit fails with probability (1 - confidence) / 2, so the difference fails with at most 1
    # - confidence
    test_lower = max(0.0, on_first[0] - np.exp(min(epsilon, 700.0)) * on_second[1])
    return MonteCarlo(draws, seed, confidence, lower, upper, hits, test_hits, float(test_lower))


def _worth(
    composition: Composition, epsilon: float, swapped: bool, proved: float
) -> tuple[float, float]:
    """Return a bracket of the delta that an attack attains in one direction, where it cannot exceed
    the proved bound."""
    target = Target(epsilon=epsilon)
    if composition.is_exact:
        return composition.brackets([target], [swapped])[0][:2]
    return composition.attacks([target], directions=[swapped])[0].value, proved


@dataclass(frozen=True, eq=False)
class _Play:
    """An attack that is played with the draws of a sampler, or of a schedule epoch by epoch."""

    release: Release
    attack: StepAttack | EpochAttack
    seed: int

    @property
    def epoch(self) -> int:
        """Number of steps whose losses are one: those of an epoch of a schedule, or of all that
        follow one plan."""
        sampler, n = self.release.sampler, self.attack.n_records[0]
        if self._follows_one_plan:
            return self.release.steps
        return sampler.steps_per_epoch(n) if isinstance(sampler, Schedule) else 1

    @property
    def _follows_one_plan(self) -> bool:
        sampler = self.release.sampler
        return isinstance(sampler, Schedule) and sampler.one_plan

    @cached_property
    def size(self) -> float:
        """Expected number of indices of a sample, at least 1."""
        sampler, n = self.release.sampler, self.attack.n_records[0]
        if isinstance(sampler, Schedule):
            return max(1.0, sampler.occurrences * n / sampler.steps_per_epoch(n))
        return max(1.0, sampler.expected_share(n) * n)

    def affordable_draws(self) -> int:
        work = _WORK_OF_EPOCHS if isinstance(self.release.sampler, Schedule) else _WORK
        # where a plan is kept, each run is a block of its own
        most = _MOST // 10 if self._follows_one_plan else _MOST
        return int(min(max(work / (self.size * self.release.steps), _FEWEST), most))

    def check_work(self, draws: int) -> None:
        """Refuse an audit that needs too much memory, or hours."""
        steps, size = self.release.steps, self.size
        if size * self.epoch > _MOST_INDICES or draws * steps * size > _MOST_WORK:
            raise ArgumentError(
                f"an audit simulates at most {_MOST_INDICES:.0e} indices per sample and "
                f"{_MOST_WORK:.0e} in all, got {draws} draws of {steps} samples of "
                f"{size:g}; take fewer draws or steps, or audit a smaller case"
            )

    def losses(self, which: int, draws: int) -> np.ndarray:
        """Sums over steps of log(density on data set 0 / on data set 1), played on data set
        `which`, shape (draws,)."""
        steps, attack, epoch = self.release.steps, self.attack, self.epoch
        frame = Frame(attack.n_records[which])
        index_stream = self._stream("sample", which)
        noise_stream = self._stream("noise", which)
        total = np.zeros(draws)
        # whole epochs at a time, in blocks that memory holds: a block may begin within a run
        width = epoch * max(1, int(_INDICES_A_BLOCK / (self.size * epoch)))
        if self._follows_one_plan:
            width = epoch  # a block has one plan
        for start in range(0, draws * steps, width):
            stop = min(start + width, draws * steps)
            samples = self.release.sampler.draw_block(frame, stop - start, index_stream)
            sums = samples.totals(attack.values(which, samples.indices) * samples.counts)
            noise = noise_stream.standard_normal(stop - start)
            outputs = sums + attack.noise_multiplier * noise
            if isinstance(attack, EpochAttack):
                fillers = attack.neighbours.filler * samples.sizes
                outputs = (outputs - fillers).reshape(-1, epoch)
            losses = attack.losses(outputs)
            runs = np.arange(start, stop, epoch) // steps
            first = start // steps
            of_runs = np.bincount(runs - first, losses)
            total[first : first + of_runs.size] += of_runs
        return total

    def _stream(self, role: str, which: int) -> np.random.Generator:
        return stream(self.seed, experiment="audit", cell={}, role=role, replicate=which)
