"""Takeaways of the main paper: sentences whose numbers come from the tables of the run."""

from __future__ import annotations

import numpy as np
import pytest

from tests.papers.cells import cells, takeaways


def test_takeaways_leave_out_what_a_run_lacks() -> None:
    assert takeaways("must", {}) == {}
    means = cells(
        "experiment sampler column stated",
        *(("3", *row) for row in (("wor", "law_mean", 300.0), ("must_ww", "law_mean", 225.0))),
    )
    assert takeaways("must", {"table9": means}) == {
        "Fewer gradients": "In experiment 3 a sample of MUST.WW has 225.0 distinct records on "
        "average, and one of WOR has 300: 25 % fewer gradients to evaluate."
    }


@pytest.mark.parametrize(
    ("upper", "judged"),
    [
        (1e-4, "Even by this measure MUST.WW pays for its smaller noise with privacy."),
        (0.45, "These brackets do not show that MUST.WW is less private than Poisson sampling."),
    ],
)
def test_composed_privacy_is_judged_by_its_brackets(upper: float, judged: str) -> None:
    rows = [
        (sampler, column, *numbers, "1")
        for sampler, noise, low, high in (
            ("poisson", 2.6, 1e-5, upper),
            ("wor", 2.6, 1e-3, 2e-3),
            ("wr", 2.6, 1e-3, 2e-3),
            ("must_ow", 2.1, 0.4, 0.5),
            ("must_ww", 2.0, 0.4, 0.5),
        )
        for column, *numbers in (
            ("sigma_times_m", noise, np.nan),
            ("delta_c_lower", np.nan, low),
            ("delta_c_upper", np.nan, high),
        )
    ]
    table8 = cells("sampler column stated consistent printed", *rows)
    (text,) = takeaways("must", {"table8": table8}).values()
    assert "MUST.WW adds 23 % less noise than Poisson" in text and judged in text
    assert "| MUST.OW | 0.4 | 0.5 |" in text


def test_what_is_proved_stands_with_what_is_not() -> None:
    rows = [
        (sampler, f"delta_c_{end}", value, "1")
        for sampler, *bounds in (
            ("poisson", 0.3769, 1.0),
            ("wor", 0.3699, 0.5701),
            ("wr", 0.39, 0.58),
            ("must_ow", 0.9, 0.95),
            ("must_ww", 0.9, 0.96),
        )
        for end, value in zip(("lower", "upper"), bounds, strict=True)
    ]
    table8 = cells("sampler column rigorous printed", *rows)
    (text,) = takeaways("must", {"table8": table8}).values()
    assert "| Poisson | 0.376 | none: its sums are divided by the realised size |" in text
    assert "| WOR | 0.369 | 0.571 |" in text  # .3699 to .5701, each rounded to its safe side
    assert "No smaller guarantee than the lower bound can hold" in text


def test_noise_is_compared_at_equal_proved_privacy() -> None:
    rows = [
        (target, sampler, "substitute", "noise_over_wor", ratio)
        for target, sampler, ratio in (
            ("1", "must_ow", 1.4),
            ("8", "must_ow", 2.9),
            ("1", "must_ww", 1.7),
        )
    ]
    table = cells("target_epsilon sampler adjacency column rigorous", *rows)
    (text,) = takeaways("must", {"noise_at_equal_privacy": table}).values()
    assert "| MUST.OW | 1.4 | 2.9 |\n| MUST.WW | 1.7 | 1.7 |" in text
