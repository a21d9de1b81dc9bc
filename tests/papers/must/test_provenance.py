"""Dependencies of this paper's experiments, which are made again if one changes."""

from __future__ import annotations

from dpsub.reproduce import experiments, provenance


def test_experiments_depend_on_samplers_and_not_on_each_other() -> None:
    names = ("distinct_counts", "linear_regression", "amplification_grid", "composition")
    modules = {name: experiments.REGISTRY.get(name).__module__ for name in names}
    closures = {name: set(provenance.closure(module)) for name, module in modules.items()}
    assert {"dpsub.sampling.base", "dpsub.sampling.chains"} <= closures["distinct_counts"]
    assert "dpsub.learning.descent" in closures["linear_regression"]
    assert (
        "dpsub.learning.descent" not in closures["distinct_counts"] | closures["amplification_grid"]
    )
    assert modules["linear_regression"] not in closures["composition"]
