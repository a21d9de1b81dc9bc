"""Adult (census income, 1994) as the main paper's third experiment uses it: 41,292 records, 13
features, one label.

The stand-in has the same schema, size, label counts and documented marginals, but invented people.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from dpsub import streams
from dpsub.data import dataset
from dpsub.data.dataset import DataSet, Obtained
from dpsub.errors import DataError

FILES = ("adult.data", "adult.test")
FIELDS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
)
NUMERIC = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
MAY_BE_MISSING = ("workclass", "occupation", "native_country")
FEATURES = (
    "age",
    "workclass_private",
    "fnlwgt",
    "education_num",
    "married",
    "white",
    "male",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "occupation_professional",
    "occupation_office",
    "occupation_worker",
)
TARGET = "income"
COLUMNS = (*FEATURES, TARGET)
N_TRAIN, N_TEST = 30969, 10323  # rows; the first ones are the training part
DIGEST = (
    # of the original files, as `digest` gives it
    "dc6be1ec7ebf8960c57e1c34ef1de16642e04fadb05fab399941491cb9d973b3"
)
_MARRIED = ("Married-civ-spouse", "Married-AF-spouse", "Married-spouse-absent")
# Everybody else (Other-service, Handlers-cleaners, Priv-house-serv) is the reference group.
_OCCUPATIONS = {
    "occupation_professional": ("Exec-managerial", "Prof-specialty"),
    "occupation_office": (
        "Adm-clerical",
        "Sales",
        "Tech-support",
        "Protective-serv",
        "Armed-Forces",
    ),
    "occupation_worker": (
        "Craft-repair",
        "Machine-op-inspct",
        "Transport-moving",
        "Farming-fishing",
    ),
}


def read_raw(path: Path) -> pd.DataFrame:
    """Return the records of one raw file in file order, numbers as int64; "?" stays for a missing
    category.

    Passed over are empty lines, the comment line that opens adult.test, and the dot that ends its
    income field.
    """
    kinds = {name: "int64" if name in NUMERIC else "str" for name in FIELDS}
    try:
        table = pd.read_csv(
            path,
            names=list(FIELDS),
            dtype=kinds,
            skipinitialspace=True,
            comment="|",
            keep_default_na=False,
            encoding="ascii",
        )
    except OSError as problem:
        raise DataError(
            f"{path} must be readable, got: {problem.strerror}; put the original file there"
        ) from None
    except ValueError as problem:
        got = " ".join(str(problem).split())
        raise DataError(
            f"{path} must hold records of adult.names, got: {got}; put the original file there"
        ) from None
    return table.assign(income=table["income"].str.rstrip("."))


def prepare(data_path: Path, test_path: Path) -> pd.DataFrame:
    """Return the prepared table: complete United States records, adult.test first, each feature
    divided by its maximum.

    The order of the parts, the grouping of occupations and the maxima over all rows (those of the
    test part included) are as in the main paper's processed file. DataError if the records are
    others than those of the original files.

    Returns
    -------
    DataFrame, shape (41292, 14)
        `FEATURES` (float64, in [0, 1]) and ``income`` (int64, 1 for more than 50K), in file order;
        the first 30,969 rows are the training part.

    References
    ----------
    must, Section 4.2.3.
    """
    records = complete(
        pd.concat([read_raw(path) for path in (test_path, data_path)], ignore_index=True)
    )
    table = unscaled(records[records["native_country"] == "United-States"])
    if (sha256 := digest(table)) != DIGEST:
        raise DataError(
            f"the records of {data_path} and {test_path} must have the SHA-256 sum {DIGEST}, got "
            f"{sha256}; a value or the order of the records differs: restore the original files"
        )
    return scaled(table)


def complete(records: pd.DataFrame) -> pd.DataFrame:
    """Return the raw `records` without a missing category."""
    return records[(records[list(MAY_BE_MISSING)] != "?").all(axis=1)]


def unscaled(records: pd.DataFrame) -> pd.DataFrame:
    """Return the features and the label of raw `records` as int64, before division by the
    maxima."""
    columns = {
        "workclass_private": records["workclass"] == "Private",
        "married": records["marital_status"].isin(_MARRIED),
        "white": records["race"] == "White",
        "male": records["sex"] == "Male",
        TARGET: records["income"] == ">50K",
        **{name: records["occupation"].isin(group) for name, group in _OCCUPATIONS.items()},
        **{name: records[name] for name in NUMERIC},
    }
    return pd.DataFrame({name: columns[name].astype("int64") for name in COLUMNS}).reset_index(
        drop=True
    )


def scaled(table: pd.DataFrame) -> pd.DataFrame:
    """Divide every feature of an unscaled `table` by its maximum over all rows."""
    from sklearn.preprocessing import MaxAbsScaler  # here, as its import takes a second

    scaler = MaxAbsScaler().set_output(transform="pandas")
    return pd.concat([scaler.fit_transform(table[list(FEATURES)]), table[[TARGET]]], axis=1)


def digest(table: pd.DataFrame) -> str:
    """Return the SHA-256 sum of an unscaled `table` (int64, little-endian, row by row), which fixes
    value and order."""
    return hashlib.sha256(table[list(COLUMNS)].to_numpy(dtype="<i8").tobytes()).hexdigest()


@dataclass(frozen=True, eq=False)
class AdultData:
    """Training and test part; the arrays cannot be written to."""

    X_train: np.ndarray  # features in [0, 1], none for the intercept; shape (30969, 13)
    y_train: np.ndarray  # 1 for an income above 50K, else 0; shape (30969,), int64
    X_test: np.ndarray  # shape (10323, 13)
    y_test: np.ndarray
    label: str  # "real", or "synthetic" for the stand-in


def write(table: pd.DataFrame, path: Path, *, label: str, sources: Mapping[str, str]) -> None:
    """Write a prepared `table` as `dataset.write_table` does."""
    dataset.write_table(
        table,
        path,
        {"dataset": "adult", "label": label, "rows": len(table), "sources": dict(sources)},
    )


def load(path: Path) -> AdultData:
    """Return the prepared data at `path`; DataError if they are not what :func:`write` wrote."""
    table, facts = dataset.read_table(path, label=str)
    X, y = table[list(FEATURES)].to_numpy(dtype=float), table[TARGET].to_numpy(dtype=np.int64)
    train, test = slice(N_TRAIN), slice(N_TRAIN, None)
    data = AdultData(
        X[train].copy(), y[train].copy(), X[test].copy(), y[test].copy(), facts["label"]
    )
    for part in (data.X_train, data.y_train, data.X_test, data.y_test):
        part.setflags(write=False)
    return data


# Summary statistics of the 41,292 prepared records of the original files (both parts together).
# Rates and shares are relative frequencies; a quantile table holds numpy.quantile(values, LEVELS)
# (linear interpolation), rounded to whole units (fnlwgt: hundreds); for capital gain and loss the
# table is that of the positive values, at MONEY_LEVELS.
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
FNLWGT = (
    13500, 27100, 38800, 62300, 104400, 127900, 155700, 176700, 194300, 216700,
    257100, 324800, 376100, 505000, 1490400,
)  # fmt: skip
EDUCATION_NUM = (  # shares of 1..16, in ten-thousandths
    5, 13, 32, 157, 127, 271, 360, 122, 3347, 2256, 447, 340, 1687, 554, 170, 112,
)  # fmt: skip
EDUCATION_BANDS = (9, 10, 11, 13, 14)  # lower ends of the bands from the second on
# shares of professional, office, worker, other (in thousandths) given the band of education_num
OCCUPATION = (
    (49, 172, 460, 319),
    (103, 287, 420, 190),
    (194, 409, 240, 157),
    (266, 383, 255, 96),
    (555, 328, 77, 40),
    (848, 115, 24, 13),
)
PRIVATE_RATE = (0.602, 0.744, 0.774, 0.850)  # given the occupation group
MONEY_LEVELS = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.94, 0.95, 1)
# share of positive values given the band of education_num
GAIN_RATE = (0.048, 0.066, 0.068, 0.089, 0.119, 0.187)
GAIN = (114, 2407, 3137, 4101, 5013, 7298, 7688, 8614, 15024, 15024, 99999, 99999, 99999)
LOSS_RATE = (0.030, 0.038, 0.041, 0.045, 0.067, 0.098)
LOSS = (155, 1509, 1628, 1740, 1876, 1887, 1902, 1977, 2001, 2258, 2415, 2415, 4356)
# Maximum-likelihood logistic regression of income on the scaled features, training part; in the
# order of FEATURES.
COEFFICIENTS = (2.37, 0.22, 1.30, 4.47, 2.47, 0.16, 0.24, 31.70, 3.01, 2.63, 1.54, 1.08, 0.66)

# one fixed stream: the stand-in is a data set, not a part of the randomness of an experiment
ROOT = 1996


def stand_in() -> pd.DataFrame:
    """Return the stand-in before division by the maxima, always the same; shape (41292, 14), int64.

    Features are drawn along a chain: sex, married given sex, age given married, hours given sex,
    education, occupation, capital gain and loss given education, workclass given occupation; race
    and weight are independent. Income follows the logistic model P(income > 50K | x) = S(a + x'
    beta) with the coefficients above. Instead of fixing a, the records with the largest x' beta + e
    (e standard logistic) of each part are the positive ones, as many as in the original.
    """
    n = N_TRAIN + N_TEST
    rng = streams.stream(ROOT, experiment="synthetic_adult", cell={}, role="data", replicate=0)

    def chance(rates: Sequence[float], group: np.ndarray | int) -> np.ndarray:
        return (rng.random(n) < np.array(rates)[group]).astype(np.int64)

    def quantile(
        levels: tuple[float, ...], tables: tuple[tuple[int, ...], ...], group: np.ndarray | int
    ) -> np.ndarray:
        level = rng.random(n)
        values = np.array([np.interp(level, levels, table) for table in tables])
        return np.rint(values[group, np.arange(n)]).astype(np.int64)

    male = chance((MALE_RATE,), 0)
    married = chance(MARRIED_RATE, male)
    education = 1 + np.searchsorted(_cumulated(EDUCATION_NUM), rng.random(n), side="right")
    band = np.digitize(education, EDUCATION_BANDS)
    shares = np.array([_cumulated(row) for row in OCCUPATION])[band]
    occupation = (rng.random((n, 1)) >= shares).sum(axis=1)
    columns = {
        "age": quantile(LEVELS, AGE, married),
        "workclass_private": chance(PRIVATE_RATE, occupation),
        "fnlwgt": quantile(LEVELS, (FNLWGT,), 0),
        "education_num": education,
        "married": married,
        "white": chance((WHITE_RATE,), 0),
        "male": male,
        "capital_gain": chance(GAIN_RATE, band) * quantile(MONEY_LEVELS, (GAIN,), 0),
        "capital_loss": chance(LOSS_RATE, band) * quantile(MONEY_LEVELS, (LOSS,), 0),
        "hours_per_week": quantile(LEVELS, HOURS, male),
        **{
            name: (occupation == number).astype(np.int64)
            for number, name in enumerate(_OCCUPATIONS)
        },
    }
    features = pd.DataFrame({name: columns[name] for name in FEATURES})
    latent = (features / features.max()).to_numpy() @ np.array(COEFFICIENTS) + rng.logistic(size=n)
    income = np.zeros(n, dtype=np.int64)
    for part, positives in zip(
        (slice(None, N_TRAIN), slice(N_TRAIN, None)), POSITIVES, strict=True
    ):
        threshold = np.sort(latent[part])[-positives]
        income[part] = latent[part] >= threshold
    return features.assign(**{TARGET: income})


def _cumulated(shares: tuple[int, ...]) -> np.ndarray:
    """Return the upper ends of the intervals of [0, 1) that belong to the classes, the last one
    left out."""
    return np.cumsum(shares)[:-1] / sum(shares)


class Adult(DataSet):
    """Features and income."""

    name = "adult"
    files: ClassVar = {"real": FILES}

    def make(self, obtained: Obtained, path: Path) -> int:
        table = (
            prepare(*(obtained.paths[name] for name in FILES))
            if obtained.paths
            else scaled(stand_in())
        )
        write(table, path, label=obtained.label, sources=obtained.sha256)
        return len(table)
