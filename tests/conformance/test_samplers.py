"""The contract of every sampler, over the registry and its examples."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dpsub.errors import ArgumentError
from dpsub.relations import Relation
from dpsub.sampling import REGISTRY, Sampler, names_of_sizes, of_sizes
from dpsub.sampling.base import PoissonStage, StagedSampler
from dpsub.sampling.frame import Frame

EXAMPLES = [(s, n) for name in REGISTRY.names() for s, n in REGISTRY.get(name).examples()]
every_example = pytest.mark.parametrize(
    ("sampler", "n"), EXAMPLES, ids=[f"{s}-{n}" for s, n in EXAMPLES]
)


def is_random_size(sampler: Sampler) -> bool:
    """Whether a sampler has a Poisson stage, and so no fixed number of draws."""
    return "Poisson" in repr(sampler)


def fixed_size(sampler: Sampler) -> int:
    last = sampler.stages[-1]  # type: ignore[attr-defined]
    return int(last.size)


def test_every_sampler_has_examples() -> None:
    assert {s.name for s, _ in EXAMPLES} == set(REGISTRY.names())
    assert {
        "poisson",
        "wor",
        "wr",
        "must_ow",
        "must_wo",
        "must_ww",
        "must_oo",
        "multistage",
    } <= set(REGISTRY.names())


def test_display_attributes_tell_the_papers_samplers_apart() -> None:
    shown = [
        REGISTRY.get(name) for name in ("poisson", "wor", "wr", "must_wo", "must_ow", "must_ww")
    ]
    for attribute in ("label", "colour", "marker"):
        assert len({getattr(s, attribute) for s in shown}) == len(shown)


@pytest.mark.parametrize("name", REGISTRY.names())
def test_relation_is_declared(name: str) -> None:
    expected = (
        Relation.ADD_REMOVE if name in ("poisson", "truncated_poisson") else Relation.SUBSTITUTE
    )
    assert REGISTRY.get(name).relation is expected


@pytest.mark.parametrize("name", names_of_sizes())
def test_sizes_are_named_and_asked_for(name: str) -> None:
    kind = REGISTRY.get(name)
    sizes = dict.fromkeys(kind.sizes, 5)
    sampler = of_sizes(name, n=9, **sizes)
    assert type(sampler) is kind and sampler.multiplicity_law(9).eta > 0
    assert of_sizes(name, n=9, **sizes, other=3) == sampler
    for size, what in kind.sizes.items():
        with pytest.raises(ArgumentError, match=f"^{name} needs {size}, the {what}, got none$"):
            of_sizes(name, n=9, **{**sizes, size: None})
    family = kind.family(9, **sizes)
    assert family.solved == ("size" if list(kind.sizes)[-1] in vars(sampler) else "rate")
    value = 5 if family.solved == "size" else 5 / 9
    assert family.make(value) == sampler and 0 < value <= family.most
    assert family.make(family.most).multiplicity_law(9).eta > 0


@every_example
def test_is_a_frozen_value(sampler: Sampler, n: int) -> None:
    assert dataclasses.is_dataclass(sampler)
    field = dataclasses.fields(sampler)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(sampler, field, 1)
    assert dataclasses.replace(sampler) == sampler
    assert repr(dataclasses.replace(sampler)) == repr(sampler)


@every_example
def test_law_is_a_law(sampler: Sampler, n: int) -> None:
    law = sampler.multiplicity_law(n)
    assert np.all(law.log_pmf <= 0)
    assert law.pmf.sum() == pytest.approx(1, abs=2e-14)
    assert law.eta == pytest.approx(1 - law.pmf[0], abs=2e-14)
    if isinstance(sampler, StagedSampler):
        last = sampler.stages[-1]
        drawn = sampler.slots(n)[-1] * last.rate if isinstance(last, PoissonStage) else last.size
        assert n * law.mean == pytest.approx(drawn, rel=2e-13)
    assert not law.log_pmf.flags.writeable


@every_example
def test_distinct_law_is_a_law_with_mean_n_eta(sampler: Sampler, n: int) -> None:
    distinct = sampler.distinct_law(n)
    assert distinct.sum() == pytest.approx(1, abs=2e-14)
    assert len(distinct) <= n + 1
    mean = np.arange(len(distinct)) @ distinct
    assert mean == pytest.approx(n * sampler.multiplicity_law(n).eta, rel=2e-13)
    assert mean == pytest.approx(sampler.expected_distinct(n), rel=2e-13)


@every_example
def test_samples_are_well_formed(sampler: Sampler, n: int) -> None:
    samples = sampler.draw_block(Frame(n), 300, np.random.default_rng(1))
    assert samples.n_subsets == len(samples) == 300
    assert samples.offsets[0] == 0 and samples.offsets[-1] == len(samples.indices) == len(
        samples.counts
    )
    assert samples.indices.dtype.kind == samples.counts.dtype.kind == "i"
    assert samples.indices.min() >= 0 and samples.indices.max() < n
    assert samples.counts.min() >= 1
    for i in range(300):
        sample = samples[i]
        assert len(np.unique(sample.indices)) == len(sample.indices) == samples.distinct[i]
        assert sample.size == samples.sizes[i]
    possible = np.flatnonzero(sampler.distinct_law(n) > 0)
    assert set(samples.distinct.tolist()) <= set(possible.tolist())
    assert samples.counts.max() < len(sampler.multiplicity_law(n).log_pmf)
    if not is_random_size(sampler):
        assert set(samples.sizes.tolist()) == {fixed_size(sampler)}


@every_example
def test_the_stream_alone_decides_the_sample(sampler: Sampler, n: int) -> None:
    first, again, other = (
        sampler.draw_block(Frame(n), 50, np.random.default_rng(seed)) for seed in (5, 5, 6)
    )
    fields = ("indices", "counts", "offsets")
    assert all(np.array_equal(getattr(first, field), getattr(again, field)) for field in fields)
    assert not all(np.array_equal(getattr(first, field), getattr(other, field)) for field in fields)
    one = sampler.draw(Frame(n), np.random.default_rng(3))
    block = sampler.draw_block(Frame(n), 1, np.random.default_rng(3))
    assert np.array_equal(one.indices, block.indices) and np.array_equal(one.counts, block.counts)


@every_example
def test_neither_the_sampler_nor_the_global_generator_changes(sampler: Sampler, n: int) -> None:
    global_state, before = np.random.get_state(legacy=False)["state"], repr(sampler)  # noqa: NPY002
    law = sampler.multiplicity_law(n)
    sampler.draw_block(Frame(n), 20, np.random.default_rng(2))
    assert repr(sampler) == before and np.array_equal(
        law.log_pmf, sampler.multiplicity_law(n).log_pmf
    )
    after = np.random.get_state(legacy=False)["state"]  # noqa: NPY002 (it is the global state that is looked at)
    assert np.array_equal(global_state["key"], after["key"]) and global_state["pos"] == after["pos"]
