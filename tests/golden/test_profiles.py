"""Double precision against 50 digits: profiles, amplified deltas, scales; and the generator against
its file."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from mpmath import mp, mpf

from dpsub import noise, sampling
from dpsub.amplification import amplify
from dpsub.noise import Gaussian
from tests.golden import generate_profiles

DOCUMENT = json.loads(Path(__file__).with_name("profiles.json").read_text(encoding="utf-8"))
RELATIVE = 1e-12
# below it doubles lose digits: of delta, and of log delta where delta is nearly 1
SMALLEST = mpf("1e-300")
EVERY = 7


def relative_error(value: float, exact: str) -> float:
    with mp.workdps(40):
        reference = mpf(exact)
        return float(abs(mpf(value) - reference) / abs(reference)) if reference else abs(value)


@pytest.mark.parametrize("name", noise.REGISTRY.names())
def test_delta_and_log_delta(name: str) -> None:
    rows = [row for row in DOCUMENT["profiles"] if row["name"] == name]
    assert len(rows) == len(generate_profiles.RATIOS) * len(generate_profiles.MULTIPLES)
    for row in rows:
        profile = noise.of(name, row["ratio"])
        delta, log_delta = (float(f(row["epsilon"])) for f in (profile.delta, profile.log_delta))
        if row["log_delta"] == "-inf":
            assert (delta, log_delta) == (0.0, -math.inf)
            continue
        if abs(mpf(row["log_delta"])) >= SMALLEST:
            assert relative_error(log_delta, row["log_delta"]) < RELATIVE, row
        if mpf(row["delta"]) >= SMALLEST:
            assert relative_error(delta, row["delta"]) < RELATIVE, row


def test_the_file_reaches_the_smallest_doubles() -> None:
    deltas = [mpf(row["delta"]) for row in DOCUMENT["profiles"] if row["name"] == "gaussian"]
    assert any(SMALLEST <= delta < mpf("1e-270") for delta in deltas)
    assert any(0 < delta < SMALLEST for delta in deltas)


def test_amplified_points() -> None:
    for row in DOCUMENT["amplified"]:
        sampler = sampling.of_sizes(row["sampler"], n=row["n"], b=row["b"], m=row["m"])
        result = amplify(
            sampler.multiplicity_law(row["n"]), noise.of(row["name"], row["ratio"]), row["epsilon"]
        )
        assert (
            relative_error(float(result.epsilon_amplified), row["epsilon_amplified"]) < RELATIVE
        ), row
        assert relative_error(float(result.delta_amplified), row["delta_amplified"]) < RELATIVE, row


def test_analytic_scales() -> None:
    for row in DOCUMENT["scales"]:
        scale = Gaussian.calibrated(row["epsilon"], row["delta"], 1.0).scale
        assert relative_error(scale, row["scale"]) < RELATIVE, row


def test_planted_fault_a_ratio_off_by_1e_11_is_seen() -> None:
    row = next(
        row for row in DOCUMENT["profiles"] if (row["name"], row["ratio"]) == ("gaussian", 1.0)
    )
    wrong = noise.of("gaussian", 1.0 + 1e-11)
    worst = max(
        relative_error(float(wrong.delta(other["epsilon"])), other["delta"])
        for other in DOCUMENT["profiles"]
        if (other["name"], other["ratio"]) == (row["name"], row["ratio"])
        and mpf(other["delta"]) >= SMALLEST
    )
    assert worst > RELATIVE


@pytest.mark.parametrize("part", generate_profiles.PARTS)
def test_the_file_is_what_its_generator_writes(part: str) -> None:
    generate, arguments = generate_profiles.PARTS[part]
    assert len(DOCUMENT[part]) == len(arguments)
    for index in range(0, len(arguments), EVERY):
        assert json.loads(json.dumps(generate(*arguments[index]))) == DOCUMENT[part][index]
