"""Stand-ins for the data sets to be clustered: mixtures with the radius and the mean squared norm of Table 1."""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize

from dpsub import checks, streams
from dpsub.data.centred import PERCENTILE, centred, squared_norms
from dpsub.data.described import Described

CLUSTERS = 40
_TAIL = 1.2  # sizes fall like j^-1.2
_SPREAD = 0.35  # standard deviation within a cluster over that between centres
_ROUNDS = 30
LARGE = 5  # the first clusters, about half of the rows, are the group "large"


def twin(described: Described, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points that resemble a data set in what the privacy accounting and the cost see of it.

    A Gaussian mixture with heavy-tailed cluster sizes and a falling spectrum; then norms are raised to a power and
    scaled, direction by direction, until largest norm and mean squared norm around the mean are those of Table 1.

    Parameters
    ----------
    described : Described
    rows : int
        At most this many; the paper's number of rows if that is smaller.

    Returns
    -------
    points : ndarray of float32, shape (n, d)
        Centred.
    large : ndarray of bool, shape (n,)
        Whether the row belongs to one of the five largest clusters.
    """
    n = min(checks.integer("rows", rows, at_least=100), described.n)
    before = math.ceil(n / (PERCENTILE / 100)) + 1
    rng = streams.stream(
        described.n_original, experiment="synthetic_points", cell={"name": described.name}, role="data", replicate=n
    )
    spectrum = np.arange(1, described.d + 1) ** -0.4
    chances = np.arange(1, CLUSTERS + 1) ** -_TAIL
    cluster = rng.choice(CLUSTERS, size=before, p=chances / chances.sum())
    centres = rng.standard_normal((CLUSTERS, described.d)) * spectrum
    values = centres[cluster] + _SPREAD * spectrum * rng.standard_normal((before, described.d))
    first = centred(values)
    points = first.points[:n].astype(float)
    large = cluster[first.kept][:n] < LARGE
    share = described.mean_square / described.radius**2
    for _ in range(_ROUNDS):
        points -= points.mean(axis=0)
        norms = np.sqrt(squared_norms(points))
        relative = norms / norms.max()
        power = optimize.brentq(lambda p, t=relative: float(np.mean(t ** (2 * p))) - share, 0.01, 100)
        if abs(power - 1) < 1e-7:
            break
        points *= (described.radius * relative**power / norms)[:, None]
    return points.astype(np.float32), large
