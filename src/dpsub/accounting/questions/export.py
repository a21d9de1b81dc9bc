"""Composed privacy loss distributions as plain arrays, in a file, and as an object of
dp-accounting."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from dpsub import checks
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.fourier import MAX_GRID
from dpsub.accounting.engine.pld import (
    MAX_LOSS,
    PrivacyLossDistribution,
    order_indices,
    symmetric_pld,
)
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.accounting.games.game import GameValue
from dpsub.accounting.questions import words
from dpsub.accounting.questions.account import WIDTH_REASONS
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.questions.question import Question
from dpsub.accounting.questions.refinement import AccountRefinement
from dpsub.errors import NumericalError, UnsupportedError
from dpsub.files import save_file

_STEP = 1 / 48  # step of the grid, in standard deviations of the loss of one event
_TAIL = 1e-18
_PROBES = (1e-2, 1e-4, 1e-6, 1e-8)
"""Upper deltas at which the bounds of exported laws are compared."""
_SHARE = 5e-2  # how far apart they may be where no width is given, as those of a curve
_HALVINGS = 3  # halvings of the step, where a grid keeps the bounds apart
_STALLED = 0.8  # share of the distance before: a finer grid does not bring the bounds together
_BISECTIONS = 24  # bisections for points that any place suits
# upper delta up to which orders are as fine as the grid
_FINE = 1e-14
_EPS = float(np.finfo(float).eps)
_UNDERFLOW = 1e-62  # e^600 times the least double, rounded up
PEER_STEP = 1e-4
"""Step of the grids of dp-accounting where none is given, in nats."""
DIRECTIONS = ("forward", "backward")
"""Directions of two data sets: the first against the second, and the other way round; the first is
the one with a record more."""


@dataclass(frozen=True, eq=False)
class ComposedLaw:
    """The privacy loss of all releases, bounded from one side.

    Attributes
    ----------
    losses, masses : ndarray, shape (n,)
        Masses at finite losses (nats, increasing). Total masses need not be 1.
    infinity : float
        Mass of an infinite loss.
    side : {"upper", "lower"}
        delta(epsilon) = sum over losses > epsilon of (1 - e^(epsilon - loss)) mass + infinity is at
        least, or at most, that of the releases.
    direction : {"forward", "backward"}
        See `DIRECTIONS`.
    """

    losses: np.ndarray
    masses: np.ndarray
    infinity: float
    side: str
    direction: str

    def delta(self, epsilon: float) -> float:
        """Return delta by the formula of `side`, rounded to it."""
        shares = -np.expm1(np.minimum(epsilon - self.losses, 0.0))
        value = float(np.sum(self.masses * shares)) + self.infinity
        # the rounding of the sum, towards the side
        return value * (1 + 1e-12 if self.side == "upper" else 1 - 1e-12)

    def curve(self, epsilons: np.ndarray) -> np.ndarray:
        """Return `delta` of an upper law at many epsilons, shape (e,), rounded up.

        delta is linear in e^epsilon between losses, and falls there by what masses under Q lie
        above: a sum of positive terms from the largest loss on.
        """
        # farther losses count as infinite: e^loss leaves the range of doubles
        near = self.losses <= MAX_LOSS
        losses, masses = self.losses[near], self.masses[near]
        beyond = self.infinity + float(np.sum(self.masses[~near]))
        with np.errstate(under="ignore"):
            above_q = np.append(np.cumsum((masses * np.exp(-losses))[::-1])[::-1], 0.0)
        gains = np.exp(losses[:-1]) * np.expm1(np.diff(losses)) * above_q[1:-1]
        at_losses = np.append(np.cumsum(gains[::-1])[::-1], 0.0)
        # the first loss above each epsilon
        places = np.searchsorted(losses, epsilons, side="right")
        inside = places < losses.size
        nearest = np.minimum(places, losses.size - 1)
        rest = np.exp(epsilons) * np.expm1(np.maximum(losses[nearest] - epsilons, 0.0))
        values = np.where(inside, at_losses[nearest] + rest * above_q[nearest], 0.0)
        # masses under Q below the least double move delta by less than the last term
        total = (values + beyond) * (1 + 4 * _EPS * (losses.size + 8))
        return np.asarray(total + losses.size * _UNDERFLOW)


@dataclass(frozen=True, eq=False)
class Export(words.ShortText):
    """Laws of both sides, where an attack is known, in both directions.

    Attributes
    ----------
    laws : tuple of ComposedLaw
    step : float
        Of their grid, nats.
    relative_width : float
        The largest (upper - lower) / upper of delta, over the epsilons where the upper one is 1e-2,
        1e-4, 1e-6 and 1e-8; 1 where no attack is known.
    width_met : bool
        Whether that is at most the requested width; if not, `width_reason` says why.
    width_reason : str
    theorem, lower_theorem : str
        As of an `Account`.
    conditions : tuple of str
        Those of the upper laws.
    question : str
        The releases and the relation, in words.
    """

    laws: tuple[ComposedLaw, ...]
    step: float
    relative_width: float = 1.0
    width_met: bool = True
    width_reason: str = ""
    theorem: str = ""
    lower_theorem: str = ""
    conditions: tuple[str, ...] = ()
    question: str = ""

    def text(self) -> words.Text:
        """Say in a few words which releases the laws are of, and how close they are."""
        sides = sorted({law.side for law in self.laws}, reverse=True)
        points = max(law.losses.size for law in self.laws)
        lines: list[words.Line] = [
            ("laws", f"{len(self.laws)}, {' and '.join(sides)}, of at most {points} losses"),
            ("step", f"{words.near(self.step)} nats"),
            ("width of delta", words.percent(self.relative_width)),
            ("theorem", "; ".join(filter(None, dict.fromkeys([self.theorem, self.lower_theorem])))),
        ]
        if self.width_reason:
            lines.append(("note", words.wider_text(self.width_reason)))
        return words.Text(f"privacy loss of {self.question}", lines)

    def save(self, path: str | Path) -> None:
        """Write NumPy arrays (NPZ): side and direction, shape (laws,), and for law i losses_i,
        masses_i, infinity_i."""
        arrays: dict[str, Any] = {
            name: np.array([getattr(law, name) for law in self.laws])
            for name in ("side", "direction")
        }
        for i, law in enumerate(self.laws):
            for name in ("losses", "masses", "infinity"):
                arrays[f"{name}_{i}"] = getattr(law, name)
        out = io.BytesIO()
        np.savez_compressed(out, **arrays)
        save_file(path, out.getvalue())

    def dp_accounting(self, step: float = PEER_STEP) -> Any:
        """Return the upper laws as a `PrivacyLossDistribution` of dp-accounting, which must be
        installed: forward is its removal, backward its addition.

        `step` is the step of its grid, in nats; by default dp-accounting's own, so that it composes
        with laws made by dp-accounting.
        """
        step = checks.real("step", step, above=0)
        try:
            pld = import_module("dp_accounting.pld.privacy_loss_distribution")
            pmf = import_module("dp_accounting.pld.pld_pmf")
        except ModuleNotFoundError:
            raise UnsupportedError(
                "this needs dp-accounting, which is not installed; pip install it"
            ) from None
        upper = {law.direction: law for law in self.laws if law.side == "upper"}
        pmfs = []
        for direction in DIRECTIONS:
            law = upper[direction]
            first, masses = _on_multiples(law, step)
            pmfs.append(pmf.DensePLDPmf(step, first, masses, law.infinity, True))
        return pld.PrivacyLossDistribution(*pmfs)


def _on_multiples(law: ComposedLaw, step: float) -> tuple[int, np.ndarray]:
    """First index and masses at multiples of the step: a loss between two goes to both, its masses
    under P and Q kept, which is a processing of the dominating pair backwards and raises every
    delta."""
    place = np.floor(law.losses / step).astype(np.int64)
    share = np.clip(np.expm1(place * step - law.losses) / np.expm1(-step) * (1 + 1e-12), 0.0, 1.0)
    first, size = int(place.min()), int(place.max() - place.min()) + 2
    if size > MAX_GRID:
        raise NumericalError(
            f"the law needs {size} points of one array, more than {MAX_GRID}; take a larger step"
        )
    masses = np.bincount(place - first, law.masses * (1 - share), minlength=size)
    masses += np.bincount(place - first + 1, law.masses * share, minlength=size)
    return first, masses * (1 + 1e-12)


def export_of(question: Question, step: float | None) -> Export:
    """Return the laws of releases of several kinds together."""
    width = _SHARE if question.width is None else question.width
    # the laws of the first bound are made in any case: there is no answer without them
    proof = Proof.of(question.releases, question.adjacency)
    spread = proof.composition.spread
    grid = spread * _STEP if step is None else checks.real("step", step, above=0)
    found = _Laws(proof, laws_of(proof, grid), grid)
    if not question.quick:
        with question.metered(), suppress(OutOfWorkError):
            found.refine(width, is_free=step is None)
    return found.export(width, question.quick)


def laws_of(proof: Proof, step: float) -> tuple[ComposedLaw, ...]:
    """Return upper and lower laws from one grid."""
    composition, laws = proof.composition, []
    for side, build in (("upper", composition.upper), ("lower", composition.lower)):
        for swapped, direction in enumerate(DIRECTIONS):
            composed = build(step, _TAIL, bool(swapped))
            if composed is not None:  # else no attack is known, of which nothing is bounded below
                laws.append(ComposedLaw(*composed.law(), side, direction))
    return tuple(laws)


class _Laws:
    """Exported laws while their bounds are brought together, and the reason why they are not
    closer."""

    def __init__(self, proof: Proof, laws: tuple[ComposedLaw, ...], step: float) -> None:
        self.proof, self.laws, self.step = proof, laws, step
        self.theorem = proof.theorem
        self.reason = WIDTH_REASONS["effort"]
        """Why the bounds are not closer: the budget, unless something else is found."""
        self.points = tuple(_epsilon_at(self._upper, delta) for delta in _PROBES)

    def _of(self, side: str) -> list[ComposedLaw]:
        return [law for law in self.laws if law.side == side]

    def _upper(self, epsilon: float) -> float:
        return max(law.delta(epsilon) for law in self._of("upper"))

    @property
    def relative_width(self) -> float:
        """Return the largest distance of delta's bounds at some epsilons, as a share of the upper
        one."""
        shares = []
        for epsilon in self.points:
            upper = self._upper(epsilon)
            lower = max((law.delta(epsilon) for law in self._of("lower")), default=0.0)
            shares.append(1 - lower / upper if upper > 0 else 0.0)
        return max(shares)

    def refine(self, width: float, is_free: bool) -> None:
        """Bring the bounds together: by a game where there is one, else by finer grids."""
        if self.relative_width <= width:
            return
        if self.proof.tightens:
            targets = [Target(epsilon=epsilon, width=width) for epsilon in self.points]
            values, reason = AccountRefinement(self.proof).game_values(targets)
            if values:
                self._play(values)
            self.reason = reason or WIDTH_REASONS["numerics"]
            return
        # a step that was asked for stays
        for _ in range(_HALVINGS if is_free else 0):
            before = self.relative_width
            self.laws, self.step = laws_of(self.proof, self.step / 2), self.step / 2
            now = self.relative_width
            if now <= width or now > _STALLED * before:
                break
        self.reason = WIDTH_REASONS["numerics" if self.proof.composition.is_exact else "theory"]

    def _play(self, values: Sequence[GameValue]) -> None:
        """Replace the upper laws by one whose delta is the least convex bound that follows from
        theirs and from games (docs/proofs/composition.md)."""
        uppers = self._of("upper")

        def profile(log_orders: np.ndarray) -> np.ndarray:
            grid_bound = np.max([law.curve(log_orders) for law in uppers], axis=0)
            played = [value.curve(log_orders) for value in values]
            return np.asarray(np.minimum.reduce([grid_bound, *played]))

        last = min(max(float(law.losses[-1]) for law in uppers), MAX_LOSS)
        fine = min(_epsilon_at(self._upper, _FINE), last)
        pld = symmetric_pld(profile, self.step, order_indices(self.step, fine, last))
        tight = [_composed_law(pld, direction) for direction in DIRECTIONS]
        self.laws = (*tight, *self._of("lower"))
        case = self.proof.cases[0]
        assert case.game is not None
        self.theorem = case.citing(case.game.theorem.text)

    def export(self, width: float, quick: bool) -> Export:
        """Return the answer, with its width and the reason where that is more than requested."""
        is_wide, proof = self.relative_width > width, self.proof
        reason = WIDTH_REASONS["quick"] if quick else self.reason
        releases = words.releases_text(proof.asked)
        return Export(
            self.laws,
            self.step,
            relative_width=self.relative_width,
            width_met=not is_wide,
            width_reason=reason if is_wide else "",
            theorem=self.theorem,
            lower_theorem=proof.attack_stands if self._of("lower") else "",
            conditions=proof.conditions,
            question=f"{releases} under {proof.relation}",
        )


def _epsilon_at(delta: Callable[[float], float], level: float) -> float:
    """Return the epsilon at which delta, which falls, is about this level: 0 if it is nowhere above
    it."""
    if delta(0.0) <= level:
        return 0.0
    low, high = 0.0, 1.0
    while delta(high) > level and high < MAX_LOSS:
        low, high = high, 2 * high
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) > level else (low, middle)
    return high


def _composed_law(pld: PrivacyLossDistribution, direction: str) -> ComposedLaw:
    """Return the law of one upper PLD without an offset, as plain arrays."""
    order = np.argsort(pld.indices, kind="stable")
    return ComposedLaw(
        pld.losses[order], pld.masses[order], pld.infinity, side="upper", direction=direction
    )
