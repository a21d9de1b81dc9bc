"""Settings that are given to a model."""

from __future__ import annotations

import pytest

from dpsub.errors import PlanError
from dpsub.reproduce import settings


def test_a_list_of_a_configuration_fits_a_plain_tuple() -> None:
    class Own(settings.ExperimentSettings):
        variants: tuple[str, ...] = ("stated",)
        steps: tuple[int, ...] = (1,)
        pairs: tuple[tuple[int, float], ...] = ()

    chosen = settings.conform(Own, {"steps": [100, 10_000], "pairs": [[1, 2]]})
    assert (chosen.steps, chosen.pairs) == ((100, 10_000), ((1, 2.0),))
    with pytest.raises(PlanError, match=r"^own\.steps\[1\] must be a whole number, got \"100\""):
        settings.conform(Own, {"steps": [1, "100"]}, path="own")
    with pytest.raises(PlanError, match=r"^own\.steps must be a list, got 100$"):
        settings.conform(Own, {"steps": 100}, path="own")
