"""The Adult census files as text: one record a line, checked field by field."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from dpsub.errors import DataError

NUMERIC = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
CATEGORIES: dict[str, tuple[str, ...]] = {
    "workclass": (
        "Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov", "Without-pay",
        "Never-worked",
    ),
    "education": (
        "Bachelors", "Some-college", "11th", "HS-grad", "Prof-school", "Assoc-acdm", "Assoc-voc", "9th", "7th-8th",
        "12th", "Masters", "1st-4th", "10th", "Doctorate", "5th-6th", "Preschool",
    ),
    "marital_status": (
        "Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed", "Married-spouse-absent",
        "Married-AF-spouse",
    ),
    "occupation": (
        "Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial", "Prof-specialty",
        "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical", "Farming-fishing", "Transport-moving",
        "Priv-house-serv", "Protective-serv", "Armed-Forces",
    ),
    "relationship": ("Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried"),
    "race": ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
    "sex": ("Female", "Male"),
    "income": ("<=50K", ">50K"),
}  # fmt: skip
"""Values of the categorical fields as adult.names lists them; the country is only compared with United-States."""
COLUMNS = (
    "age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship", "race",
    "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income",
)  # fmt: skip
MISSING = "?"
MAY_BE_MISSING = ("workclass", "occupation", "native_country")


def read(path: Path) -> pd.DataFrame:
    """Return the records of one raw file in file order; the index holds their line numbers.

    Empty lines and the comment line that opens adult.test (it starts with "|") are passed over, and the dot that ends
    its income field is removed. The marker "?" of a missing category is kept.

    Returns
    -------
    DataFrame, shape (records, 15)
        Numeric fields as int64, the others as text.

    Raises
    ------
    DataError
        If the file is missing, is not text, or a line has another number of fields, a field that must be a whole
        number is none (NaN and blanks included), or a category is not among those of adult.names.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="ascii")
    except OSError as problem:
        raise DataError(f"{path} must be readable, got: {problem.strerror}; put the original file there") from None
    except UnicodeDecodeError as problem:
        raise DataError(f"{path} must be ASCII text, got another byte at {problem.start}; it is damaged") from None
    if text.lstrip().startswith("<"):
        raise DataError(f"{path} must hold comma-separated records, got a web page; put the original file there")
    lines = pd.Series(text.split("\n"), dtype="str")
    lines.index += 1
    lines = lines[(lines.str.strip() != "") & ~lines.str.startswith("|")]
    if lines.empty:
        raise DataError(f"{path} must hold records, got none; put the original file there")
    fields = lines.str.count(",") + 1
    if (wrong := fields != len(COLUMNS)).any():
        raise DataError(
            f"every line of {path} must have {len(COLUMNS)} fields, got {fields[wrong].iloc[0]} in line "
            f"{wrong.idxmax()}; it is truncated or lacks a column: put the original file there"
        )
    table = lines.str.split(",", expand=True).apply(lambda column: column.str.strip())
    table.columns = pd.Index(COLUMNS)
    table["income"] = table["income"].str.rstrip(".")
    for name in NUMERIC:
        whole = table[name].str.fullmatch(r"[0-9]{1,9}")
        if not whole.all():
            _refuse(path, name, "a whole number", table[name], ~whole)
        table[name] = table[name].astype("int64")
    for name, categories in CATEGORIES.items():
        known = table[name].isin((*categories, MISSING) if name in MAY_BE_MISSING else categories)
        if not known.all():
            _refuse(path, name, "a category that adult.names lists", table[name], ~known)
    return table


def _refuse(path: Path, name: str, rule: str, values: pd.Series, bad: pd.Series) -> None:
    line, value = bad.idxmax(), values[bad].iloc[0]
    raise DataError(f"{name} must be {rule}, got {value!r} in line {line} of {path}; put the original file there")
