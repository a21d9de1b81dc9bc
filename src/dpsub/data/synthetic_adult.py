"""A stand-in for the Adult data: the same schema, size, label counts and documented marginals, but invented people.

Results made from it are labelled "synthetic" everywhere and are never compared with printed numbers.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsub import streams
from dpsub.data import adult
from dpsub.data.adult_table import N_TEST, N_TRAIN

# Summary statistics of the 41,292 prepared records of the original files (both parts together). Rates and shares are
# relative frequencies; a quantile table holds numpy.quantile(values, LEVELS) (linear interpolation), rounded to whole
# units (fnlwgt: hundreds); for capital gain and loss the table is that of the positive values, at MONEY_LEVELS.
POSITIVES = (7766, 2682)  # incomes above 50K in the training and in the test part
MALE_RATE = 0.674
WHITE_RATE = 0.880
MARRIED_RATE = (0.162, 0.624)  # given female, male
LEVELS = (0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1)
AGE = (  # given not married, married
    (17, 17, 18, 20, 22, 25, 28, 32, 36, 41, 46, 54, 60, 72, 90),
    (17, 22, 26, 29, 32, 36, 39, 42, 45, 49, 53, 59, 64, 73, 90),
)
HOURS = (  # given female, male
    (1, 8, 15, 20, 30, 35, 40, 40, 40, 40, 40, 50, 55, 70, 99),
    (1, 10, 20, 30, 40, 40, 40, 40, 40, 45, 50, 60, 60, 80, 99),
)
FNLWGT = (13500, 27100, 38800, 62300, 104400, 127900, 155700, 176700, 194300, 216700, 257100, 324800, 376100, 505000,
          1490400)  # fmt: skip
EDUCATION_NUM = (  # shares of 1..16, in ten-thousandths
    5, 13, 32, 157, 127, 271, 360, 122, 3347, 2256, 447, 340, 1687, 554, 170, 112,
)  # fmt: skip
EDUCATION_BANDS = (9, 10, 11, 13, 14)  # lower ends of the bands from the second on
OCCUPATION = (  # shares of professional, office, worker, other (in thousandths) given the band of education_num
    (49, 172, 460, 319), (103, 287, 420, 190), (194, 409, 240, 157), (266, 383, 255, 96), (555, 328, 77, 40),
    (848, 115, 24, 13),
)  # fmt: skip
PRIVATE_RATE = (0.602, 0.744, 0.774, 0.850)  # given the occupation group
MONEY_LEVELS = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.94, 0.95, 1)
GAIN_RATE = (0.048, 0.066, 0.068, 0.089, 0.119, 0.187)  # share of positive values given the band of education_num
GAIN = (114, 2407, 3137, 4101, 5013, 7298, 7688, 8614, 15024, 15024, 99999, 99999, 99999)
LOSS_RATE = (0.030, 0.038, 0.041, 0.045, 0.067, 0.098)
LOSS = (155, 1509, 1628, 1740, 1876, 1887, 1902, 1977, 2001, 2258, 2415, 2415, 4356)
# Maximum-likelihood logistic regression of income on the scaled features, training part; in the order of FEATURES.
COEFFICIENTS = (2.37, 0.22, 1.30, 4.47, 2.47, 0.16, 0.24, 31.70, 3.01, 2.63, 1.54, 1.08, 0.66)

ROOT = 1996  # one fixed stream: the stand-in is a data set, not a part of the randomness of an experiment


def generate() -> pd.DataFrame:
    """Return the stand-in before division by the maxima, always the same.

    Features are drawn along a chain: sex, married given sex, age given married, hours given sex, education,
    occupation, capital gain and loss given education, workclass given occupation; race and weight are independent.
    Income follows the logistic model P(income > 50K | x) = S(a + x' beta) with the coefficients above. Instead of
    fixing a, the records with the largest x' beta + e (e standard logistic) of each part are the positive ones, as
    many as in the original.

    Returns
    -------
    DataFrame, shape (41292, 14), int64
        The columns of the prepared table; divide by :func:`dpsub.data.adult.scaled`.
    """
    n = N_TRAIN + N_TEST
    rng = streams.stream(ROOT, experiment="synthetic_adult", cell={}, role="data", replicate=0)

    def chance(rate: np.ndarray | float) -> np.ndarray:
        return (rng.random(n) < rate).astype(np.int64)

    def quantile(levels: tuple[float, ...], tables: tuple[tuple[int, ...], ...], group: np.ndarray | int) -> np.ndarray:
        level = rng.random(n)
        values = np.array([np.interp(level, levels, table) for table in tables])
        return np.rint(values[group, np.arange(n)]).astype(np.int64)

    male = chance(MALE_RATE)
    married = chance(np.array(MARRIED_RATE)[male])
    education = 1 + np.searchsorted(_cumulated(EDUCATION_NUM), rng.random(n), side="right")
    band = np.digitize(education, EDUCATION_BANDS)
    shares = np.array([_cumulated(row) for row in OCCUPATION])[band]
    occupation = (rng.random((n, 1)) >= shares).sum(axis=1)
    columns = {
        "age": quantile(LEVELS, AGE, married),
        "workclass_private": chance(np.array(PRIVATE_RATE)[occupation]),
        "fnlwgt": quantile(LEVELS, (FNLWGT,), 0),
        "education_num": education,
        "married": married,
        "white": chance(WHITE_RATE),
        "male": male,
        "capital_gain": chance(np.array(GAIN_RATE)[band]) * quantile(MONEY_LEVELS, (GAIN,), 0),
        "capital_loss": chance(np.array(LOSS_RATE)[band]) * quantile(MONEY_LEVELS, (LOSS,), 0),
        "hours_per_week": quantile(LEVELS, HOURS, male),
        "occupation_professional": (occupation == 0).astype(np.int64),
        "occupation_office": (occupation == 1).astype(np.int64),
        "occupation_worker": (occupation == 2).astype(np.int64),
    }
    features = pd.DataFrame({name: columns[name] for name in adult.FEATURES})
    latent = (features / features.max()).to_numpy() @ np.array(COEFFICIENTS) + rng.logistic(size=n)
    income = np.zeros(n, dtype=np.int64)
    for part, positives in zip((slice(None, N_TRAIN), slice(N_TRAIN, None)), POSITIVES, strict=True):
        threshold = np.sort(latent[part])[-positives]
        income[part] = latent[part] >= threshold
    return features.assign(**{adult.TARGET: income})


def _cumulated(shares: tuple[int, ...]) -> np.ndarray:
    """Return the upper ends of the intervals of [0, 1) that belong to the classes, the last one left out."""
    return np.cumsum(shares)[:-1] / sum(shares)
