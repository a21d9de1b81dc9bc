"""The loss of a mixture (1 - q) P + q Q against P, where the loss of Q against P is x: the effect
of a sample on a loss."""

from __future__ import annotations

import math

import numpy as np

LARGE = 30.0  # nats; larger losses are computed in logarithms, where nothing overflows


def mixture_loss(loss: np.ndarray, rate: float | np.ndarray) -> np.ndarray:
    """ln(1 + q (e^x - 1)) for losses x >= 0 of any size and rates q in (0, 1], which broadcast."""
    small = np.log1p(rate * np.expm1(np.minimum(loss, LARGE)))
    with np.errstate(divide="ignore"):
        large = np.logaddexp(np.log1p(-rate), np.log(rate) + loss)
    return np.where(loss > LARGE, large, small)


def one_mixture_loss(loss: float, rate: float) -> float:
    """ln(1 + q (e^x - 1)) for one loss x of either sign, at most `LARGE`; a small result keeps all
    its digits."""
    return math.log1p(rate * math.expm1(loss))
