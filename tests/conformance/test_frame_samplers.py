"""The contract of samplers that use strata, clusters, sizes or an order: draws against laws, with
exact nulls."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from dpsub.errors import ArgumentError
from dpsub.sampling import FRAME_REGISTRY, FrameSampler
from dpsub.sampling.designs import Systematic, counts_of
from dpsub.sampling.frame import Frame
from dpsub.sampling.pps import PpsConditionalPoisson, PpsSystematic
from tests.statistical import budget

N_DRAWS = 4000
EXAMPLES = [pair for name in FRAME_REGISTRY.names() for pair in FRAME_REGISTRY.get(name).examples()]
every_example = pytest.mark.parametrize(
    ("sampler", "frame"), EXAMPLES, ids=[repr(sampler) for sampler, _ in EXAMPLES]
)


def seen(sampler: FrameSampler, frame: Frame, case: object) -> list[tuple[int, ...]]:
    block = sampler.draw_block(frame, N_DRAWS, budget.rng("design draws", (repr(sampler), case)))
    return [
        counts_of(frame.n, np.repeat(block[i].indices, block[i].counts)) for i in range(N_DRAWS)
    ]


def inclusion_p(states: list[tuple[int, ...]], pi: np.ndarray) -> float:
    return budget.p_value((np.array(states) > 0).sum(axis=0), pi, len(states))


def test_all_designs_are_there() -> None:
    assert set(FRAME_REGISTRY.names()) == {
        "cluster",
        "pps_cluster",
        "pps_conditional_poisson",
        "pps_systematic",
        "pps_with_replacement",
        "random_size",
        "rounded_rate",
        "stratified",
        "stratified_rate",
        "systematic",
    }
    assert {sampler.name for sampler, _ in EXAMPLES} == set(FRAME_REGISTRY.names())


@every_example
def test_law_is_a_law_with_the_inclusion_probabilities(sampler: FrameSampler, frame: Frame) -> None:
    law = sampler.law(frame)
    assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    included = sum(p * (np.array(state) > 0) for state, p in law.items())
    np.testing.assert_allclose(included, sampler.inclusion_probabilities(frame), atol=1e-11)


@every_example
def test_the_stream_alone_decides_the_sample_of_a_frozen_value(sampler: Any, frame: Frame) -> None:
    before = np.random.get_state(legacy=False)["state"]["pos"]  # noqa: NPY002 (it is the global state that is looked at)
    one, two = (sampler.draw_block(frame, 20, np.random.default_rng(3)) for _ in range(2))
    assert all(
        np.array_equal(getattr(one, f), getattr(two, f)) for f in ("indices", "counts", "offsets")
    )
    assert np.array_equal(sampler.draw(frame, np.random.default_rng(3)).indices, one[0].indices)
    assert np.random.get_state(legacy=False)["state"]["pos"] == before  # noqa: NPY002
    assert dataclasses.replace(sampler) == sampler
    for field in dataclasses.fields(sampler)[:1]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(sampler, field.name, 1)


@every_example
def test_draws_follow_the_law(sampler: FrameSampler, frame: Frame) -> None:
    states = seen(sampler, frame, "law")
    level = budget.level("design draws", 2 * len(EXAMPLES))
    assert budget.joint_p(states, sampler.law(frame)) > level
    assert inclusion_p(states, sampler.inclusion_probabilities(frame)) > level


def test_a_planted_fault_is_found() -> None:
    """Three faults: sizes one off; systematic in place of maximal entropy; a law of the wrong
    order."""
    level = budget.level("design draws", 2 * len(EXAMPLES))
    frame = Frame(6, sizes=np.array([1.0, 2.0, 2.0, 3.0, 5.0, 30.0]))
    wrong = seen(
        PpsConditionalPoisson(3), Frame(6, sizes=np.array([1.4, 2.0, 2.0, 3.0, 5.0, 30.0])), "fault"
    )
    assert inclusion_p(wrong, PpsConditionalPoisson(3).inclusion_probabilities(frame)) < level
    assert (
        budget.joint_p(seen(PpsSystematic(3), frame, "fault"), PpsConditionalPoisson(3).law(frame))
        < level
    )
    assert (
        budget.joint_p(
            seen(Systematic(2, "random"), Frame(6), "fault"), Systematic(2).law(Frame(6))
        )
        < level
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Frame(3, strata=[0, 2, 2]),
            "each stratum from 0 to 2 must hold a record, got a gap",
        ),
        (
            lambda: Frame(3, clusters=[0, 1]),
            "cluster labels must be given for all n = 3 records, got 2",
        ),
        (lambda: Frame(2, sizes=[1, -1]), "sizes must not be negative, got -1"),
        (lambda: Frame(2, sizes=[1, np.nan]), "sizes must be finite, got 1 NaN"),
        (
            lambda: Frame(2).needed("sizes"),
            "this sampler needs a frame with sizes, got one without",
        ),
        (
            lambda: Systematic(2).law(Frame(5)),
            "step must divide the number of records = 5, got step = 2",
        ),
        (
            lambda: FRAME_REGISTRY.get("rounded_rate")("x", "half_up"),
            "rate must be a number such as 0.1 or 1/10",
        ),
        (
            lambda: FRAME_REGISTRY.get("rounded_rate")("3/2", "half_up"),
            "rate must be above 0 and at most 1",
        ),
        (lambda: FRAME_REGISTRY.get("random_size")(3, 0), "sd must be above 0, got sd = 0"),
        (
            lambda: FRAME_REGISTRY.get("cluster")(5).law(Frame(2, clusters=[0, 1])),
            "at most the number of clusters = 2",
        ),
        (
            lambda: FRAME_REGISTRY.get("stratified")((3,)).law(Frame(2, strata=[0, 0])),
            "as large as its allocation",
        ),
        (
            lambda: FRAME_REGISTRY.get("stratified")((1, 1)).law(Frame(2, strata=[0, 0])),
            "for all 1 strata, got 2",
        ),
        (
            lambda: PpsSystematic(3).law(Frame(3, sizes=[1, 1, 1])),
            "m must be below the number of units",
        ),
        (lambda: PpsSystematic(1).law(Frame(2, sizes=[0, 1])), "sizes must be above 0"),
    ],
)
def test_bad_frames_and_designs_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message.replace("(", r"\(")):
        make()
