"""The stand-in: schema, size and label counts of the original, its documented marginals, always the same."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from dpsub.data import adult, synthetic_adult
from dpsub.data.adult_table import N_TEST, N_TRAIN


@pytest.fixture(scope="module")
def table():
    return synthetic_adult.generate()


def test_schema_size_and_label_counts_are_those_of_the_original(table):
    assert tuple(table.columns) == adult.COLUMNS
    assert table.shape == (41292, 14) == (N_TRAIN + N_TEST, 14)
    assert (table.dtypes == "int64").all()
    assert table["income"].iloc[:N_TRAIN].sum() == 7766
    assert table["income"].iloc[N_TRAIN:].sum() == 2682


def test_it_is_always_the_same_and_leaves_the_global_generator_alone(table):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert adult.digest(synthetic_adult.generate()) == adult.digest(table)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_marginals_are_near_those_of_the_original(table):
    # means over the 41,292 original records
    original = {
        "age": 38.597, "workclass_private": 0.7300, "fnlwgt": 187243, "education_num": 10.2226, "married": 0.4737,
        "white": 0.8802, "male": 0.6738, "capital_gain": 1126.8, "capital_loss": 90.07, "hours_per_week": 40.976,
        "occupation_professional": 0.2691, "occupation_office": 0.3023, "occupation_worker": 0.2798,
    }  # fmt: skip
    ratio = table[list(original)].mean() / pd.Series(original)
    # the tables interpolate linearly between quantiles, which thickens the top of the weights and of the gains
    loose = ["fnlwgt", "capital_gain", "capital_loss"]
    assert ratio.drop(loose).between(0.98, 1.02).all(), ratio
    assert ratio[loose].between(0.85, 1.15).all(), ratio


def test_values_stay_in_the_ranges_of_the_original(table):
    ranges = {"age": (17, 90), "fnlwgt": (13492, 1490400), "education_num": (1, 16), "capital_gain": (0, 99999),
              "capital_loss": (0, 4356), "hours_per_week": (1, 99)}  # fmt: skip
    for name in adult.COLUMNS:
        low, high = ranges.get(name, (0, 1))
        assert table[name].between(low, high).all(), name
    groups = table[["occupation_professional", "occupation_office", "occupation_worker"]].sum(axis=1)
    assert groups.max() == 1


def test_logistic_regression_meets_a_task_like_the_original(table):
    scaled = adult.scaled(table)
    X, y = scaled[list(adult.FEATURES)].to_numpy(), scaled["income"].to_numpy()
    fit = LogisticRegression(C=np.inf, max_iter=5000).fit(X[:N_TRAIN], y[:N_TRAIN])
    assert 0.82 < fit.score(X[N_TRAIN:], y[N_TRAIN:]) < 0.86  # the original gives 0.841
    signs = np.sign(fit.coef_[0]) == np.sign(synthetic_adult.COEFFICIENTS)
    assert signs.all()


def test_it_passes_through_the_same_writing_and_loading(table, tmp_path):
    adult.write(adult.scaled(table), tmp_path / "adult.parquet", label="synthetic", sources={})
    data = adult.load(tmp_path / "adult.parquet")
    assert data.label == "synthetic"
    assert (data.X_train.shape, data.X_test.shape) == ((N_TRAIN, 13), (N_TEST, 13))
    assert (data.y_train.sum(), data.y_test.sum()) == synthetic_adult.POSITIVES


def test_tables_of_shares_and_quantiles_are_well_formed():
    assert sum(synthetic_adult.EDUCATION_NUM) == pytest.approx(10000, abs=5)
    assert all(sum(row) == pytest.approx(1000, abs=2) for row in synthetic_adult.OCCUPATION)
    for levels, tables in (
        (synthetic_adult.LEVELS, (*synthetic_adult.AGE, *synthetic_adult.HOURS, synthetic_adult.FNLWGT)),
        (synthetic_adult.MONEY_LEVELS, (synthetic_adult.GAIN, synthetic_adult.LOSS)),
    ):
        for values in tables:
            assert len(values) == len(levels)
            assert list(values) == sorted(values)
