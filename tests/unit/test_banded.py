"""Strategy matrices: what is read of them, what they amount to, what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpsub
from dpsub.accounting.release import as_plain, of_plain
from dpsub.cli import main
from dpsub.errors import ArgumentError, DpsubError, UnsupportedError
from dpsub.noise.banded import BandedStrategy

CYCLIC = dpsub.CyclicPoisson(0.1, 5)
TOEPLITZ = np.eye(20) + 0.6 * np.eye(20, k=-1) + 0.3 * np.eye(20, k=-2)
ASKED: dict[str, Any] = {"noise_multiplier": 1.5, "delta": 1e-5}


def test_equal_columns_are_poisson_steps() -> None:
    normed = TOEPLITZ / np.linalg.norm(TOEPLITZ, axis=0)
    strategy = BandedStrategy.of_matrix(normed)
    assert strategy.bands == 3
    assert len(set(strategy.norms)) == 1
    for relation in ("add_remove", "zero_out", "substitute"):
        found = dpsub.account(CYCLIC, strategy=strategy, adjacency=relation, **ASKED)
        plain = dpsub.account(CYCLIC, steps=20, adjacency=relation, **ASKED)
        assert found.kind == "exact"
        assert found.upper == pytest.approx(plain.upper, rel=1e-9)
        assert found.theorem.startswith("Theorem 82, docs/proofs/schedules.md; Theorem 17, ")


def test_columns_of_other_norms_are_steps_of_other_noise() -> None:
    # the first group has the longest columns: the last two of the matrix are cut
    strategy = BandedStrategy.of_matrix(TOEPLITZ)
    found = dpsub.account(CYCLIC, strategy=TOEPLITZ, **ASKED)
    plain = dpsub.account(CYCLIC, steps=20, noise_multiplier=1.5 / strategy.norms[0], delta=1e-5)
    assert (found.kind, found.upper) == ("exact", pytest.approx(plain.upper, rel=1e-9))
    rising = dpsub.Ledger()
    norms = np.linspace(0.5, 1.5, 20)
    for norm in norms[4::5]:
        rising.record(dpsub.Poisson(0.1), noise_multiplier=1.5 / norm)
    both = dpsub.account(CYCLIC, strategy=BandedStrategy(3, tuple(norms.tolist())), **ASKED)
    ledger = rising.account(delta=1e-5)
    assert both.kind == "exact"
    assert both.lower <= ledger.upper * (1 + 1e-9)
    assert ledger.lower <= both.upper * (1 + 1e-9)


def test_no_group_has_the_longest_columns_of_all_turns() -> None:
    crossed = BandedStrategy(2, (1.0, 1.2, 1.0, 1.3, 1.0, 1.0))
    asked = {**ASKED, "noise_multiplier": 1.0}
    found = dpsub.account(dpsub.CyclicPoisson(0.1, 2), strategy=crossed, **asked)
    assert found.kind == "exact"
    crossed = BandedStrategy(2, (1.0, 1.2, 1.0, 1.2, 1.5, 1.0))
    found = dpsub.account(dpsub.CyclicPoisson(0.1, 2), strategy=crossed, **asked)
    assert found.kind == "bounds"

    def of_turns(*norms: float) -> dpsub.Account:
        ledger = dpsub.Ledger()
        for norm in norms:
            ledger.record(dpsub.Poisson(0.1), noise_multiplier=1 / norm)
        return ledger.account(delta=1e-5)

    # each group attains no more than the upper end, and one of them the lower one
    groups = [of_turns(1.0, 1.0, 1.5), of_turns(1.2, 1.2, 1.0)]
    assert max(each.lower for each in groups) <= found.upper
    assert found.lower <= max(each.upper for each in groups) * (1 + 1e-9)
    assert found.upper <= of_turns(1.2, 1.2, 1.5).upper * (1 + 1e-3)


def test_public_steps_are_gaussian() -> None:
    found = dpsub.account(
        dpsub.Deterministic(10), 50, strategy=TOEPLITZ, adjacency="zero_out", **ASKED
    )
    norm = math.sqrt(1 + 0.36 + 0.09)
    plain = dpsub.account(
        dpsub.Deterministic(10),
        50,
        noise_multiplier=1.5 / (2 * norm),
        adjacency="zero_out",
        delta=1e-5,
    )
    assert found.upper == pytest.approx(plain.upper, rel=1e-4)


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        (TOEPLITZ.T, "must be lower triangular with a diagonal above 0"),
        (np.eye(3) - np.diag([0, 0, 1.0]), "a diagonal above 0"),
        (TOEPLITZ[:3], "must be a square matrix"),
        (np.full((2, 2), math.nan), "must be finite"),
    ],
)
def test_matrices_that_are_no_strategy(matrix: np.ndarray, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        dpsub.account(CYCLIC, strategy=matrix, **ASKED)


@pytest.mark.parametrize(
    ("sampler", "n", "more", "said"),
    [
        (dpsub.CyclicPoisson(0.1, 2), None, {}, "got 3 bands: no bound is proved for samples that"),
        (dpsub.Shuffle(10), 50, {}, "got shuffle; use cyclic_poisson or deterministic"),
        (CYCLIC, None, {"mechanism": "laplace"}, "gaussian noise and a fixed denominator"),
        (CYCLIC, None, {"group": 2}, "one record or user"),
        (CYCLIC, None, {"releases_per_sample": 2, "steps": 20}, "one release of each sample"),
        (CYCLIC, None, {"steps": 25}, "got 20 columns and steps = 25; give the strategy of all"),
    ],
)
def test_what_no_theorem_covers(sampler: Any, n: int | None, more: Any, said: str) -> None:
    with pytest.raises(DpsubError, match=said):
        dpsub.account(sampler, n, strategy=TOEPLITZ, **ASKED, **more)


def test_norms_are_checked() -> None:
    for norms in ((), (0.0,), (1.0, -1.0)):
        with pytest.raises(ArgumentError, match="norms must be"):
            BandedStrategy(1, norms)
    with pytest.raises(ArgumentError, match="bands must be at most the number of columns, 2, got"):
        BandedStrategy(3, (1.0, 1.0))


def test_users_with_correlated_noise() -> None:
    found = dpsub.account(CYCLIC, strategy=TOEPLITZ, records_per_user=2, **ASKED)
    plain = dpsub.account(CYCLIC, strategy=2 * TOEPLITZ, **ASKED)
    assert found.upper == pytest.approx(plain.upper, rel=1e-9)


def test_calibration_files_and_certificates() -> None:
    release = dpsub.Release.of(CYCLIC, noise_multiplier=1.5, strategy=TOEPLITZ)
    assert (release.steps, release.times) == (20, 4)
    assert of_plain(as_plain(release)) == release
    assert str(release).endswith("noise multiplier 1.5, correlated noise of 3 bands")
    found = dpsub.calibrate(CYCLIC, strategy=100 * TOEPLITZ, epsilon=2.0, delta=1e-5)
    plain = dpsub.calibrate(CYCLIC, steps=20, epsilon=2.0, delta=1e-5)
    ratio = 100 * BandedStrategy.of_matrix(TOEPLITZ).largest
    assert found.noise_multiplier == pytest.approx(ratio * plain.noise_multiplier, rel=3e-3)
    assert "rows of a strategy matrix of 3 bands" in found.statement().sentence


def test_selection_of_runs_with_strategies() -> None:
    asked: dict[str, Any] = {"runs_mean": 2, "distribution": "fixed", "delta": 1e-5}
    found = dpsub.select(CYCLIC, noise_multiplier=3.0, strategy=TOEPLITZ, **asked)
    norm = BandedStrategy.of_matrix(TOEPLITZ).largest
    plain = dpsub.select(CYCLIC, noise_multiplier=3.0 / norm, steps=20, **asked)
    assert found.upper == pytest.approx(plain.upper, rel=5e-3)


def test_a_picture_over_steps_needs_one_norm(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = dpsub.account(CYCLIC, strategy=TOEPLITZ, **ASKED)
    with pytest.raises(UnsupportedError, match="whose columns have one norm"):
        found.plot(tmp_path / "steps.png")


def test_files_of_strategies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["account", "cyclic_poisson", "--rate", ".1", "--cycle", "5"]
    words += ["--noise-multiplier", "1.5", "--delta", "1e-5"]
    np.save(tmp_path / "matrix.npy", TOEPLITZ)
    np.savetxt(tmp_path / "matrix.csv", TOEPLITZ, delimiter=",")
    strategy = BandedStrategy.of_matrix(TOEPLITZ)
    np.savetxt(tmp_path / "norms.txt", np.array(strategy.norms))
    shown = []
    for given in (
        ["--strategy", "matrix.npy"],
        ["--strategy", "matrix.csv"],
        ["--strategy", "norms.txt", "--bands", "3"],
    ):
        given[1] = str(tmp_path / given[1])
        assert main([*words, "--epochs", "4", *given]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] == shown[2]
    assert "correlated noise of 3 bands" in shown[0]
    matrix = str(tmp_path / "matrix.npy")
    assert main([*words, "--epochs", "4", "--strategy", matrix, "--bands", "3"]) == 2
    assert "says the bands of a matrix itself" in capsys.readouterr().err
    assert main([*words, "--epochs", "4", "--strategy", "gone.npy"]) == 2
    assert "must be a file with numbers, got gone.npy" in capsys.readouterr().err
