"""Moments of the privacy loss from privacy profiles, with a certificate of the quadrature's error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpsub import checks
from dpsub.errors import ArgumentError, NumericalError

Curve = Callable[[np.ndarray], np.ndarray]
"""log delta of one ordered pair at an array of epsilons >= 0; convex and not increasing as delta in exp(epsilon)."""

_PANELS = 1024
_MOST = 2**20


@dataclass(frozen=True)
class MomentInterval:
    """Numbers between which E exp(s L) lies."""

    lower: float
    upper: float

    @property
    def renyi_upper(self) -> float:
        """log of the upper end; divided by s it is a bound on the Renyi divergence of order s + 1."""
        return math.log(self.upper)


def moment_from_profiles(
    forward: Curve, backward: Curve, order: float, *, end: float, rate: float = math.inf, width: float = 5e-7
) -> MomentInterval:
    """Return E exp(s L) of a pair from the profiles of its two orders,

        1 + s (s + 1) int_0^inf (exp(s eps) D(mu || mu') + exp(-(s + 1) eps) D(mu' || mu)) d eps.

    In alpha = exp(epsilon) a divergence is convex, so that between two points a chord lies above it and, by Jensen's
    inequality, its value at the centroid of the weight alpha^(s - 1) (or alpha^-(s + 2)), times the weight, lies below
    its integral. Panels are made smaller until both agree within `width`. Beyond `end` the integrand must fall at
    least like a geometric series.

    Parameters
    ----------
    forward, backward : callable
        log D_{exp(epsilon)} of the pair and of the pair reversed.
    order : float
        s, above 0.
    end : float
        Where the integration stops, in nats.
    rate : float
        Beyond `end` both divergences fall at least like exp(-rate (epsilon - end)); infinite where they are 0 there.
        For a log-concave loss (Gaussian noise) the rate at `end` is minus the slope of log delta.
    width : float
        Relative width to be reached.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or the rate does not exceed s: the moment may then be infinite.
    NumericalError
        If the width is not reached within 2^20 panels.

    References
    ----------
    balle, Theorem 6.
    """
    s = checks.real("order", order, above=0)
    last = checks.real("end", end, above=0)
    if not rate > s:
        raise ArgumentError(f"the profiles must fall faster than exp(-s epsilon) beyond end for a finite moment, got "
                            f"rate = {rate:g} and s = {s:g}; take a later end")
    tail = 0.0
    slope = float(rate)
    if math.isfinite(slope):
        first, second = (float(curve(np.array([last]))[0]) for curve in (forward, backward))
        tail = math.exp(first + s * last) / (slope - s) + math.exp(second - (s + 1) * last) / (slope + s + 1)
    panels = _PANELS
    while True:
        edges = np.linspace(0.0, last, panels + 1)
        sides = [_enclose(curve, edges, power) for curve, power in ((forward, s), (backward, -(s + 1)))]
        factor = s * (s + 1)
        low, high = (1 + factor * (sides[0][side] + sides[1][side]) for side in (0, 1))
        high += factor * tail
        if high - low <= width * low:
            slack = 1e-12 * high  # rounding of a million positive terms
            return MomentInterval(max(1.0, low - slack), high + slack)
        # the error is of second order in the width of a panel
        panels = math.ceil(panels * max(1.5, 1.1 * math.sqrt((high - low) / (width * low))))
        if panels > _MOST:
            raise NumericalError(f"the moment must be known within a relative {width:g}, got {low:.10g} to {high:.10g};"
                                 " take a larger width or a smaller order")


def tail_rate(curve: Curve, end: float) -> float:
    """Return a rate at which a log-concave divergence falls beyond `end` at least: by a secant before it.

    The divergence is log-concave in epsilon if the density of the loss is (Gaussian noise): it is the convolution of
    that density with 1 - exp(-u) on u >= 0, which is log-concave.
    """
    step = 1e-3 * end
    before, after = curve(np.array([end - step, end]))
    return float((before - after) / step)


def _enclose(curve: Curve, edges: np.ndarray, power: float) -> tuple[float, float]:
    """Bounds on the integral of exp(power eps) D(eps) d eps = alpha^(power - 1) D d alpha over the panels."""
    start, step = edges[:-1], np.diff(edges)
    # integrals over [eps, eps + h] of exp(power eps) and exp((power + 1) eps) d eps, relative to the left end
    mass = _growth(power, step)
    centroid = _growth(power + 1, step) / mass  # of alpha, relative to alpha at the left end: in [1, exp(h)]
    values = np.exp(curve(edges))
    weight = np.exp(power * start) * mass
    share = np.clip((centroid - 1) / np.expm1(step), 0.0, 1.0)
    upper = weight * ((1 - share) * values[:-1] + share * values[1:])
    lower = weight * np.exp(curve(start + np.log(centroid)))
    return float(lower.sum()), float(upper.sum())


def _growth(power: float, step: np.ndarray) -> np.ndarray:
    """int_0^h exp(power u) du, which is h for power 0."""
    return step if power == 0 else np.expm1(power * step) / power
