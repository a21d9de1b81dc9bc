"""Bounds of H_a at some orders, and chords between them: H_a is convex in a and falls with it."""

from __future__ import annotations

import numpy as np

_ROUNDING = 1 + 1e-9


def falling(x: np.ndarray, nodes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return chords between some bounds of H_a at nodes, and beyond the last one that bound, as H_a
    falls with a."""
    kept = convex(np.expm1(nodes), values)
    between = chords(x, nodes[kept], values[kept]) if len(kept) > 1 else values[kept]
    return np.where(x <= nodes[kept[-1]], between, values[kept[-1]])


def convex(a: np.ndarray, values: np.ndarray) -> list[int]:
    """Return places of bounds, up to the least one, without those above the chord of their
    neighbours: chords of any choice are bounds."""
    kept: list[int] = []
    for i in range(int(np.argmin(values)) + 1):
        while len(kept) > 1:
            left, middle = kept[-2:]
            share = (a[middle] - a[left]) / (a[i] - a[left])
            if values[middle] < values[left] * (1 - share) + values[i] * share:
                break
            kept.pop()
        kept.append(i)
    return kept


def chords(x: np.ndarray, nodes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return upper bounds of H_a at x = ln a: H_a is convex in a, so that chords of upper bounds
    are upper bounds."""
    left = np.clip(np.searchsorted(nodes, x, side="right") - 1, 0, nodes.size - 2)
    share = np.expm1(x - nodes[left]) / np.expm1(nodes[left + 1] - nodes[left])
    share = np.clip(share, 0.0, 1.0)
    chord: np.ndarray = (values[left] * (1 - share) + values[left + 1] * share) * _ROUNDING
    return chord
