"""Adult (census income, 1994) as the main paper's third experiment uses it: 41,292 records, 13 features, one label."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dpsub.data import adult_raw
from dpsub.data.adult_table import COLUMNS, FEATURES, N_TRAIN, TARGET, AdultData, load, write
from dpsub.errors import DataError

__all__ = [
    "COLUMNS", "FEATURES", "FILES", "N_TRAIN", "TARGET", "Acceptance", "AdultData",
    "digest", "load", "prepare", "scaled", "unscaled", "write",
]  # fmt: skip

FILES = ("adult.data", "adult.test")
_MARRIED = ("Married-civ-spouse", "Married-AF-spouse", "Married-spouse-absent")
# Everybody else (Other-service, Handlers-cleaners, Priv-house-serv) is the reference group.
_OCCUPATIONS = {
    "occupation_professional": ("Exec-managerial", "Prof-specialty"),
    "occupation_office": ("Adm-clerical", "Sales", "Tech-support", "Protective-serv", "Armed-Forces"),
    "occupation_worker": ("Craft-repair", "Machine-op-inspct", "Transport-moving", "Farming-fishing"),
}


@dataclass(frozen=True)
class Acceptance:
    """What the prepared records must be; the defaults describe the original files.

    Parameters
    ----------
    from_test, from_data : int
        Records kept from adult.test and from adult.data.
    first_fnlwgt : int
        ``fnlwgt`` of the first record of adult.data, found at 0-based row `from_test`.
    n_train : int
        The first `n_train` rows are the training part.
    positives_train, positives_test : int
        Records with an income above 50K in the two parts.
    digest : str
        SHA-256 sum of the unscaled table (int64, little-endian, row by row), which fixes every value and the order.
    """

    from_test: int = 13788
    from_data: int = 27504
    first_fnlwgt: int = 77516
    n_train: int = N_TRAIN
    positives_train: int = 7766
    positives_test: int = 2682
    digest: str = "dc6be1ec7ebf8960c57e1c34ef1de16642e04fadb05fab399941491cb9d973b3"


def prepare(data_path: Path, test_path: Path, *, expected: Acceptance | None = None) -> pd.DataFrame:
    """Return the prepared table: complete United States records, adult.test first, each feature divided by its maximum.

    The order of the parts, the grouping of occupations and the maxima over all rows (those of the test part included)
    are as in the main paper's processed file.

    Parameters
    ----------
    data_path, test_path : Path
        The raw files adult.data and adult.test.
    expected : Acceptance, optional
        What to check; the original files by default.

    Returns
    -------
    DataFrame, shape (41292, 14)
        `FEATURES` (float64, in [0, 1]) and ``income`` (int64, 1 for more than 50K), in file order; the first 30,969
        rows are the training part.

    Raises
    ------
    DataError
        If a file is damaged (see :func:`dpsub.data.adult_raw.read`), or the records are not those expected: a
        file is truncated, reordered or altered.

    References
    ----------
    must, Section 4.2.3.
    """
    parts = [_kept(adult_raw.read(path)) for path in (test_path, data_path)]
    table = unscaled(pd.concat(parts, ignore_index=True))
    _accept(table, n_test_part=len(parts[0]), expected=expected or Acceptance())
    return scaled(table)


def _kept(records: pd.DataFrame) -> pd.DataFrame:
    complete = (records[list(adult_raw.MAY_BE_MISSING)] != adult_raw.MISSING).all(axis=1)
    return records[complete & (records["native_country"] == "United-States")]


def unscaled(records: pd.DataFrame) -> pd.DataFrame:
    """Return the features and the label of raw `records` as int64, before division by the maxima."""
    columns = {
        "workclass_private": records["workclass"] == "Private",
        "married": records["marital_status"].isin(_MARRIED),
        "white": records["race"] == "White",
        "male": records["sex"] == "Male",
        TARGET: records["income"] == ">50K",
        **{name: records["occupation"].isin(group) for name, group in _OCCUPATIONS.items()},
        **{name: records[name] for name in adult_raw.NUMERIC},
    }
    return pd.DataFrame({name: columns[name].astype("int64") for name in COLUMNS})


def scaled(table: pd.DataFrame) -> pd.DataFrame:
    """Divide every feature of an unscaled `table` by its maximum over all rows.

    Raises
    ------
    DataError
        If a feature is nowhere positive, so that its maximum cannot be divided by.
    """
    maxima = table[list(FEATURES)].max()
    if (flat := maxima <= 0).any():
        raise DataError(f"every feature must be positive somewhere, got only zeros in {flat.idxmax()}")
    return pd.concat([table[list(FEATURES)] / maxima, table[[TARGET]]], axis=1)


def digest(table: pd.DataFrame) -> str:
    """Return the SHA-256 sum of an unscaled `table`: every value and the order of the rows enter."""
    values = np.ascontiguousarray(table[list(COLUMNS)].to_numpy(dtype="<i8"))
    return hashlib.sha256(values.tobytes()).hexdigest()


def _accept(table: pd.DataFrame, *, n_test_part: int, expected: Acceptance) -> None:
    """Raise unless `table` holds the records that are expected; the most telling sentence comes first."""
    train, test = table[TARGET].iloc[: expected.n_train], table[TARGET].iloc[expected.n_train :]
    counts = (
        ("adult.test must give {} complete United States records", expected.from_test, n_test_part),
        ("adult.data must give {} complete United States records", expected.from_data, len(table) - n_test_part),
    )
    for rule, wanted, found in counts:
        if found != wanted:
            raise DataError(f"{rule.format(wanted)}, got {found}; it is truncated or altered: restore it")
    first = int(table["fnlwgt"].iloc[n_test_part])
    if first != expected.first_fnlwgt:
        raise DataError(
            f"the first record of adult.data must have fnlwgt {expected.first_fnlwgt}, got {first}; "
            "the records are reordered: restore the original file"
        )
    positives = (
        ("the training part must hold {} incomes above 50K", expected.positives_train, int(train.sum())),
        ("the test part must hold {} incomes above 50K", expected.positives_test, int(test.sum())),
    )
    for rule, wanted, found in positives:
        if found != wanted:
            raise DataError(f"{rule.format(wanted)}, got {found}; records are altered or reordered: restore them")
    if (found_digest := digest(table)) != expected.digest:
        raise DataError(
            f"the prepared records must have the SHA-256 sum {expected.digest}, got {found_digest}; "
            "a value or the order of the records differs: restore the original files"
        )
