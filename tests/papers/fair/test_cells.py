"""Cells of the fair comparison: what is refused, in which words, and what a grid stands for."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from dpsub.errors import ArgumentError, DpsubError, UnsupportedError
from dpsub.papers.fair.experiments.fair_cells import Cell, check_grid, expanded, sampler_of

GOOD: dict[str, Any] = {
    "sampler": "must_ow", "m": 40, "b": 80, "steps": 10, "target_epsilon": 1.0, "target_delta": 1e-5,
    "dataset": "breast_cancer", "convention": "rigorous",
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"b": 500}, "b must be at most n = 426, got b = 500"),
        ({"b": None}, "must_ow needs b, the size of the first stage, got none"),
        ({"sampler": "wor", "m": 427}, "m must be at most n = 426, got m = 427"),
        ({"sampler": "must_oo", "b": 30}, "m must be at most b = 30, got m = 40"),
        ({"dataset": "breast_cancers"}, "unknown data set 'breast_cancers'; did you mean 'breast_cancer'?"),
        ({"sampler": "must_ov"}, "unknown sampler 'must_ov'; did you mean 'must_wo'?"),
        ({"convention": "papers"}, "unknown convention 'papers'; did you mean 'paper'?"),
        ({"sampler": "wor:50,wr:30"}, "m must be the 30 slots that the chain 'wor:50,wr:30' leaves, got m = 40"),
        ({"sampler": "wor:50,wx:40"}, "unknown kind of stage 'wx'; "),
        ({"sampler": "wor:fifty"}, "the size of a stage must be a number, got 'wor:fifty'"),
        ({"target_delta": 1.0}, "target_delta must be below 1, got target_delta = 1"),
        ({"steps": 0}, "steps must be at least 1, got steps = 0"),
    ],
)
def test_a_cell_that_cannot_be_is_refused_in_a_sentence(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=re.escape(message)):
        Cell.of({**GOOD, **change})


def test_a_missing_and_an_unknown_field_are_named() -> None:
    with pytest.raises(ArgumentError, match=r"a cell must have the fields .*, got none named steps; add it"):
        Cell.of({name: value for name, value in GOOD.items() if name != "steps"})
    with pytest.raises(ArgumentError, match="unknown field of a cell 'step'; did you mean 'steps'"):
        Cell.of({**GOOD, "step": 1})


def test_a_target_that_no_noise_reaches_is_refused_before_any_work() -> None:
    cell = Cell.of({**GOOD, "sampler": "wor", "m": 400, "steps": 10**7, "target_epsilon": 0.01})
    with pytest.raises(UnsupportedError, match="within reach of a noise multiplier of 10000, got wor with m = 400"):
        cell.check_reach()
    Cell.of(GOOD).check_reach()


def test_samplers_of_one_stage_have_no_b() -> None:
    assert Cell.of({**GOOD, "sampler": "wor"}).b is None
    assert Cell.of({**GOOD, "sampler": "wor"}) == Cell.of({**GOOD, "sampler": "wor", "b": None})
    assert Cell.of(GOOD).b == 80


def test_a_chain_is_the_sampler_that_its_stages_describe() -> None:
    law = sampler_of("wor:80,wr:40", n=426, m=40, b=None).multiplicity_law(426)
    assert law.pmf == pytest.approx(Cell.of(GOOD).drawn.multiplicity_law(426).pmf, rel=1e-12)
    with pytest.raises(DpsubError, match="can only be the last stage"):
        sampler_of("poisson:0.5,wr:40", n=426, m=40, b=None)


def test_a_grid_is_all_combinations_once() -> None:
    entry = {"dataset": "linear", "samplers": ["poisson", "must_ow"], "m": [50, 100], "b": [200, 400], "steps": 10,
             "target_epsilon": [1, 2], "target_delta": 1e-5}  # fmt: skip
    cells = list(expanded([entry], "paper"))
    assert len(cells) == len(set(cells)) == 2 * 2 * (1 + 2)
    assert {cell.convention for cell in cells} == {"paper"}
    with pytest.raises(ArgumentError, match="a grid must hold each cell once, got poisson on linear twice"):
        check_grid([entry, {**entry, "samplers": ["poisson"]}])


def test_a_hundred_thousand_cells_are_made_in_seconds() -> None:
    start = time.process_time()
    for b in range(200, 1200):
        Cell("must_ww", 100, b, 100, 1.0, 1e-5, "linear").check_reach()
    assert (time.process_time() - start) * 100 < 20
