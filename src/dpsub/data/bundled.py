"""Classification data that scikit-learn carries with it, mapped to fixed ranges without a look at
the records.

Scaling by what is public about the measurements, not by statistics of the records, costs no privacy
budget. The ranges of the cell measurements are an assumption: round numbers above the range that
the data's own published summary gives.
"""

from __future__ import annotations

import numpy as np

from dpsub import checks

NAMES = ("breast_cancer", "digits", "ten_digits")
CELL_RANGES = (40, 50, 300, 5000, 0.3, 1.5, 1.5, 0.4, 0.8, 0.3)
"""Largest radius, texture, perimeter, area, smoothness, compactness, concavity, concave points,
symmetry, dimension."""
ERROR_SHARE = 0.2
"""Range of the standard error of a measurement, as a share of the range of the measurement."""
DARKEST = 16  # of a pixel


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features, shape (n, p), twice the measurement over its public range, minus 1; and
    labels.

    "breast_cancer": 569 cell samples with 30 features, 1 for benign, else 0; "digits": 1797 images
    of 64 pixels, 1 for odd, else 0; "ten_digits": the same images, labelled by the digit.
    """
    checks.one_of("bundled data set", name, NAMES)
    # imported here: it takes a second, and only these data need it
    from sklearn import datasets

    if name != "breast_cancer":
        images, digit = datasets.load_digits(return_X_y=True)
        return 2 * images / DARKEST - 1, (digit % 2 if name == "digits" else digit).astype(float)
    cells, benign = datasets.load_breast_cancer(return_X_y=True)
    ranges = np.array(CELL_RANGES)
    public = np.concatenate([ranges, ERROR_SHARE * ranges, ranges])
    return np.clip(2 * cells / public - 1, -1, 1), benign.astype(float)


def clipped_rows(features: np.ndarray, norm: float) -> np.ndarray:
    """Return `features` with each row scaled down to at most `norm`: each record by itself, at no
    cost."""
    norm = checks.real("norm", norm, above=0)
    lengths = np.sqrt(np.einsum("ij,ij->i", features, features))
    return features * (norm / np.maximum(lengths, norm))[:, None]
