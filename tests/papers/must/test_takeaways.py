"""What a reader should take from the main paper: sentences whose numbers come from the tables of the run."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsub.papers.must.takeaways import TAKEAWAYS
from dpsub.reproduce.report.takeaways import Tables


def test_takeaways_leave_out_what_a_run_lacks() -> None:
    assert TAKEAWAYS.sentences(Tables({})) == []
    (only,) = TAKEAWAYS.sentences(Tables({"table9": _law_means()}))
    assert only == (
        "**Fewer gradients.** In the sizes of experiment 3 a subset drawn by MUST.WW has 225.0 distinct records on "
        "average where WOR has 300: 25 % fewer gradients to evaluate."
    )


def test_composed_privacy_is_judged_by_its_brackets() -> None:
    def sentence(upper: float) -> str:
        rows = []
        for sampler, noise, low, high in (
            ("poisson", 2.6, 1e-5, upper), ("wor", 2.6, 1e-3, 2e-3), ("wr", 2.6, 1e-3, 2e-3),
            ("must_ow", 2.1, 0.4, 0.5), ("must_ww", 2.0, 0.4, 0.5),
        ):  # fmt: skip
            rows += [(sampler, "sigma_times_m", noise, np.nan), (sampler, "delta_c_lower", np.nan, low),
                     (sampler, "delta_c_upper", np.nan, high)]  # fmt: skip
        cells = pd.DataFrame(rows, columns=["sampler", "column", "stated", "consistent"]).assign(printed="1")
        (text,) = TAKEAWAYS.sentences(Tables({"table8": cells}))
        return text

    assert "MUST.WW adds 23 % less noise than Poisson" in sentence(1e-4)
    assert "Even by that measure MUST.WW pays for the smaller noise with privacy." in sentence(1e-4)
    assert "The brackets of MUST.WW and Poisson do not separate the two." in sentence(0.45)


def test_what_is_proved_stands_with_what_is_not() -> None:
    rows = [
        (sampler, column, value)
        for sampler, low, high in (
            ("poisson", 0.377, 1.0), ("wor", 0.369, 0.571), ("wr", 0.39, 0.58), ("must_ow", 0.9, 0.95),
            ("must_ww", 0.9, 0.96),
        )
        for column, value in (("delta_c_lower", low), ("delta_c_upper", high))
    ]  # fmt: skip
    cells = pd.DataFrame(rows, columns=["sampler", "column", "rigorous"]).assign(printed="1")
    (text,) = TAKEAWAYS.sentences(Tables({"table8": cells}))
    assert "Poisson at least 0.37 (nothing is proved: its sums are divided by the realised size)" in text
    assert "WOR 0.36 to 0.58," in text  # .369 to .571, each rounded to its safe side
    assert "No guarantee below the first numbers can hold" in text


def test_noise_is_compared_at_equal_proved_privacy() -> None:
    rows = [
        (target, sampler, "substitute", "noise_over_wor", ratio)
        for target, sampler, ratio in (("1", "must_ow", 1.4), ("8", "must_ow", 2.9), ("1", "must_ww", 1.7))
    ]
    cells = pd.DataFrame(rows, columns=["target_epsilon", "sampler", "adjacency", "column", "rigorous"])
    (text,) = TAKEAWAYS.sentences(Tables({"noise_at_equal_privacy": cells}))
    assert "that of MUST.OW is 1.4 to 2.9 times and that of MUST.WW is 1.7 to 1.7 times that of WOR" in text


def _law_means() -> pd.DataFrame:
    return pd.DataFrame({
        "experiment": "3", "sampler": ["wor", "must_ww"], "column": "law_mean", "printed": "", "stated": [300.0, 225.0],
        "verdict": "", "erratum": "", "note": "",
    })  # fmt: skip
