"""Composed privacy loss distributions as plain arrays, in a file, and as an object of
dp-accounting."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from dpsub import checks
from dpsub.accounting.account import Proof
from dpsub.accounting.compose import MAX_GRID
from dpsub.accounting.release import Release
from dpsub.errors import NumericalError, UnsupportedError
from dpsub.files import save_file

_STEP = 1 / 48  # of the grid, in standard deviations of the loss of one event
_TAIL = 1e-18
PEER_STEP = 1e-4
"""Step of the grids of dp-accounting where none is given, in nats."""
DIRECTIONS = ("forward", "backward")
"""Of two data sets the first against the second, and the other way round; the first is the one with
a record more."""


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
        """The formula of `side`, rounded to it."""
        shares = -np.expm1(np.minimum(epsilon - self.losses, 0.0))
        value = float(np.sum(self.masses * shares)) + self.infinity
        # the rounding of the sum, towards the side
        return value * (1 + 1e-12 if self.side == "upper" else 1 - 1e-12)


@dataclass(frozen=True, eq=False)
class Export:
    """Laws of both sides, where an attack is known, in both directions; `step`: of their grid,
    nats."""

    laws: tuple[ComposedLaw, ...]
    step: float

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
        """The upper laws as a `PrivacyLossDistribution` of dp-accounting, which must be installed:
        forward is its removal, backward its addition.

        `step`: of its grid, nats; by default dp-accounting's own, so that it composes with what
        dp-accounting makes.
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
    """First index and masses at multiples of the step: what is between two goes to both, its masses
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


def export_of(releases: Sequence[Release], adjacency: str | None, step: float | None) -> Export:
    """The laws of releases of several kinds together."""
    composition = Proof.of(releases, adjacency).composition
    width = composition.spread * _STEP if step is None else checks.real("step", step, above=0)
    laws = []
    for side, build in (("upper", composition.upper), ("lower", composition.lower)):
        for swapped, direction in enumerate(DIRECTIONS):
            composed = build(width, _TAIL, bool(swapped))
            if composed is not None:  # else no attack is known, of which nothing is bounded below
                laws.append(ComposedLaw(*composed.law(), side, direction))
    return Export(tuple(laws), width)
