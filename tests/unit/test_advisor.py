"""The design advisor: numbers against draws and closed forms, bad frames and hostile texts refused in one sentence."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpsub import cli
from dpsub.amplification.survey import advisor, rates, unequal
from dpsub.amplification.survey.advisor import FrameTable, read_frame
from dpsub.errors import ArgumentError, DataError, UnsupportedError
from dpsub.sampling import FRAME_REGISTRY, FrameSampler
from dpsub.sampling.designs import ClusterSample, PpsCluster, RoundedRate, Stratified, Systematic
from dpsub.sampling.frame import Frame
from dpsub.sampling.pps import PpsConditionalPoisson, PpsWithReplacement

GOOD = "stratum,cluster,size\n" + "".join(f"{'ab'[i % 2]},{i % 4},{i + 1}\n" for i in range(40))
FRAME = Frame(6, strata=[0, 0, 0, 1, 1, 1], clusters=[0, 1, 1, 2, 2, 2], sizes=[1.0, 2, 2, 3, 4, 6])
Y = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0])


def expected_variance(sampler: FrameSampler, weights: np.ndarray) -> float:
    """Variance of sum over the sample of weights * Y, from the enumerated law."""
    law = sampler.law(FRAME)
    totals = np.array([np.array(state) @ (weights * Y) for state in law])
    p = np.array(list(law.values()))
    assert p @ totals == pytest.approx(Y.sum())
    return float(p @ (totals - Y.sum()) ** 2)


@pytest.mark.parametrize(
    ("sampler", "formula"),
    [
        (RoundedRate("1/3", "randomised"), advisor.variance_random_size(Y, {2: 1.0})),
        (RoundedRate("2/5", "randomised"), advisor.variance_random_size(Y, {2: 0.6, 3: 0.4})),
        (ClusterSample(2), advisor.variance_clusters(Y, FRAME.clusters, 2, 1.0)),
        (ClusterSample(1, 0.4), advisor.variance_clusters(Y, FRAME.clusters, 1, 0.4)),
        (PpsCluster(), advisor.variance_one_cluster(Y, FRAME.clusters)),
        (Systematic(3), advisor.variance_systematic(Y, 3)),
        (Stratified((1, 2)), advisor.variance_stratified(Y, FRAME.strata, (1, 2))),
    ],
)
def test_variances_equal_those_of_the_law(sampler: FrameSampler, formula: float) -> None:
    weights = 1 / sampler.inclusion_probabilities(FRAME)
    assert expected_variance(sampler, weights) == pytest.approx(formula, rel=1e-12)


def test_pps_variances() -> None:
    p = FRAME.sizes / FRAME.sizes.sum()
    hansen_hurwitz = (p * (Y / p - Y.sum()) ** 2).sum() / 2
    assert expected_variance(PpsWithReplacement(2), 1 / (2 * p)) == pytest.approx(hansen_hurwitz)
    even = PpsConditionalPoisson(2)
    pi = even.inclusion_probabilities(FRAME)
    # an approximation: close for this design, exact for equal sizes
    assert advisor.variance_largest_entropy(Y, pi) == pytest.approx(expected_variance(even, 1 / pi), rel=0.15)
    assert advisor.variance_largest_entropy(Y, np.full(6, 1 / 3)) == pytest.approx(advisor.variance_simple(Y, 2))
    assert advisor.variance_largest_entropy(FRAME.sizes, pi) == 0


def test_every_bound_brackets_the_exact_loss_and_base_keeps_the_promise() -> None:
    designs = pytest.importorskip("dpsub.papers.bun.experiments.designs")
    table = designs.simulated_frame(np.random.default_rng(2), 200, 3, 10)
    found, left_out = advisor.advise(table, rate="1/10", epsilon=0.5)
    assert left_out == [] and len(found) >= 14
    for one in found:
        if not math.isnan(one.exact):
            assert one.lower <= one.exact <= one.upper + 1e-9, one.design
        if math.isfinite(one.upper):
            assert one.base > 0 and (one.base <= 0.5) == (one.upper >= 0.5 - 1e-9), one.design
            assert one.noise_at_target == pytest.approx(one.noise * (0.5 / one.base) ** 2)
    by_name = {one.design: one for one in found}
    assert by_name["simple random"].exact == pytest.approx(math.log1p(0.1 * math.expm1(0.5)))
    assert by_name["rounded rate, half up"].exact >= 0.5
    assert by_name["systematic, known order"].lower > 5
    assert by_name["strata, Neyman, from the data"].base == 0
    assert by_name["one cluster, PPS"].lower > 0.5


def test_the_sampler_of_a_design_draws_what_was_advised() -> None:
    designs = pytest.importorskip("dpsub.papers.bun.experiments.designs")
    table = designs.simulated_frame(np.random.default_rng(2), 200, 3, 10)
    for one in advisor.advise(table, rate="1/10", epsilon=0.5)[0]:
        sizes = [one.sampler.draw(table.frame, np.random.default_rng(seed)).size for seed in range(100)]
        assert np.mean(sizes) == pytest.approx(one.size_mean, abs=max(1e-9, 0.6 * one.size_sd)), one.design
        if isinstance(one.sampler, FrameSampler):
            expected = one.sampler.inclusion_probabilities(table.frame).sum()
            assert expected == pytest.approx(one.size_mean, rel=1e-9), one.design


def write(folder: Path, text: str) -> Path:
    path = folder / "frame.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stratum,size\na,1\nb,2\n", "a frame must have the column 'cluster', got 'stratum, size'; add it"),
        (GOOD.replace("a,0,1\n", ",0,1\n", 1), "every record must have a stratum, got none in line 2"),
        (GOOD.replace("a,0,1\n", "a,0,\n", 1), "every record must have a size, got none in line 2"),
        (GOOD.replace("a,0,1\n", "a,0,-3\n", 1), "size must not be negative, got -3 in line 2"),
        (GOOD.replace("a,0,1\n", "a,0,x\n", 1), "size must be a number, got 'x' in line 2"),
        (GOOD.replace("a,0,1\n", "a,0,nan\n", 1), "size must be a number, got 'nan' in line 2"),
        ("stratum,cluster,size\na,1,1\n", "a frame must have 2 to 2000000 records, got 1"),
        ("stratum,cluster,size,allocation\na,1,1,3\na,2,2,3\n", "allocation, got 2 records and 3 to draw"),
        ("stratum,cluster,size,allocation\na,1,1,1\na,2,2,2\n", "allocation must be one whole number of at least 1"),
        ("stratum,cluster,size,size\na,1,1,3\nb,2,2,4\n", "a frame must have one column 'size', got 2; rename"),
        ("stratum,cluster,size\na,1,1,9\nb,2,2,9\n", "must be a CSV file in UTF-8, .* Expected 3 fields in line 2"),
        ("", "must be a CSV file in UTF-8, .*: no columns"),
        ('stratum,cluster,size\na,1,1\n"b,2,2\n', "must be a CSV file in UTF-8, .* unexpected end of data"),
        (GOOD.replace("a,0,1\n", "a,0,1_0\n", 1), "size must be a number, got '1_0' in line 2"),
        ("stratum,cluster,size\na,1\nb,2,2\n", "every record must have a size, got none in line 2"),
        (GOOD.replace("a,0,1\n", "a,0,1e308\n", 1), "size must be 0 or lie in .*, got 1e.308 in line 2"),
        (GOOD.replace("a,0,1\n", "a,0,1e-320\n", 1), "size must be 0 or lie in .* in line 2; use another unit"),
    ],
)
def test_bad_frames_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_frame(write(tmp_path, text))


def test_blank_lines_quotes_and_packed_files_are_read(tmp_path: Path) -> None:
    plain = read_frame(write(tmp_path, GOOD))
    odd = "\ufeff stratum, cluster ,size\n\n" + GOOD.split("\n", 1)[1].replace("a,0,1\n", '"a", 0,"1.0"\n\n \n')
    packed = tmp_path / "frame.csv.gz"
    packed.write_bytes(gzip.compress(odd.encode()))
    for table in (read_frame(write(tmp_path, odd)), read_frame(packed)):
        assert np.array_equal(table.values, plain.values) and table.stratum_names == ("a", "b")
        assert np.array_equal(table.frame.strata, plain.frame.strata)


def test_the_advisor_needs_no_pandas_and_loads_the_programmes_late(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    run = f"from dpsub.cli import main; main(['advise', {str(path)!r}, '--epsilon', '1', '--rate', '0.25'])"
    loaded = "print(sorted({'pandas', 'scipy.optimize', 'scipy.sparse'} & set(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", f"import sys; {run}; {loaded}"], capture_output=True, check=True)
    assert done.stderr.decode().strip() == "[]"


def test_rates_and_limits_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    table = read_frame(write(tmp_path, GOOD))
    with pytest.raises(UnsupportedError, match=r"must be at least 1, got 0\.8; raise"):
        advisor.advise(table, rate="1/50", epsilon=1.0)
    with pytest.raises(ArgumentError, match="upper_limit must be at least the largest value = 40"):
        advisor.advise(table, rate="1/4", epsilon=1.0, upper_limit=3.0)
    with pytest.raises(ArgumentError, match="rate must be below 1"):
        advisor.advise(table, rate=1, epsilon=1.0)
    _, left_out = advisor.advise(table, rate="1/30", epsilon=1.0)
    assert any(reason.startswith("strata: rate times the records of a stratum must be") for reason in left_out)


def test_large_clusters_and_long_orders_do_not_underflow() -> None:
    # e^-1000 and less is below the smallest double after a few factors
    rows = 4000
    clusters = np.minimum(np.arange(rows) // 1200, 2)
    frame = Frame(rows, strata=np.zeros(rows, dtype=int), clusters=clusters, sizes=np.ones(rows))
    found, left_out = advisor.advise(FrameTable(frame, np.arange(rows) % 7.0, ("a",), None), rate="1/10", epsilon=2.0)
    by_name = {one.design: one for one in found}
    assert left_out == []
    # 1200 and 1600 records: the others are out of reach, and the limit is reached
    limit = max(unequal.pps_cluster_limit(sizes, 0, 2.0) for sizes in ((1200, 1200, 1600), (1199, 1200, 1600)))
    assert by_name["one cluster, PPS"].exact == pytest.approx(limit, rel=1e-12)
    order = by_name["systematic, known order"]
    assert 2.0 * 390 < order.lower <= order.upper == 2.0 * 401


def test_lower_bounds_stand_at_the_largest_rates() -> None:
    assert rates.lower_amplified(1.0, 40.0) == pytest.approx(40.0, rel=1e-12)
    assert rates.lower_amplified(1.0, 5000.0) == 5000.0
    assert rates.lower_amplified(1 - 2**-53, 5000.0) == pytest.approx(53 * math.log(2))
    assert rates.lower_amplified(0.5, 0.3) == pytest.approx(-math.log1p(0.5 * math.expm1(-0.3)), rel=1e-14)


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "=cmd|' /C calc'!A0", "{wildcard}", "__import__('os')", "a\tb", "%s%n"]
)
def test_hostile_labels_stay_text(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = GOOD.replace("a,", f'"{name}",')
    path = write(tmp_path, text)
    before = sorted(tmp_path.iterdir())
    assert cli.main(["advise", str(path), "--epsilon", "1", "--rate", "1/4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {one["design"] for one in found["designs"]} >= {"simple random", "strata, Neyman, public"}
    assert sorted(tmp_path.iterdir()) == before


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, GOOD)
    assert cli.main(["advise", str(path), "--epsilon", "1", "--rate", "0.25"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("40 records, rate 0.25, epsilon 1, total of 'size'")
    assert max(map(len, text.splitlines())) <= 118
    assert cli.main(["advise", str(path), "--epsilon", "1e-10", "--rate", "0.25"]) == 0
    numbers = [line.split() for line in capsys.readouterr().out.splitlines() if "simple random  " in line]
    assert numbers[0][2:5] == ["2.5e-11", "2.50001e-11", "2.50001e-11"]  # cells that fill their column stand apart
    assert cli.main(["advise", str(tmp_path / "none.csv"), "--epsilon", "1", "--rate", "0.25"]) == 2
    assert "a frame must be in a file" in capsys.readouterr().err
    assert cli.main(["advise", str(path), "--epsilon", "1", "--rate", "0.25", "--value", "income"]) == 2
    assert "a frame must have the column 'income'" in capsys.readouterr().err


def test_given_allocation_is_advised(tmp_path: Path) -> None:
    rows = "".join(f"{'ab'[i % 2]},{i % 4},{i + 1},{5 + 2 * (i % 2)}\n" for i in range(40))
    table = read_frame(write(tmp_path, "stratum,cluster,size,allocation\n" + rows))
    assert isinstance(table, FrameTable) and table.allocation == (5, 7)
    found = {one.design: one for one in advisor.advise(table, rate="1/4", epsilon=1.0)[0]}
    assert found["strata, given, public"].exact == pytest.approx(math.log1p(0.35 * math.expm1(1)))


def test_every_registered_design_has_a_label() -> None:
    assert all(FRAME_REGISTRY.get(name).label for name in FRAME_REGISTRY.names())
