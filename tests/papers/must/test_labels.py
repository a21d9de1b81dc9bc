"""Names of this paper in the form in which they are shown."""

from __future__ import annotations

from dpsub.reproduce.labels import display


def test_quantities_have_the_signs_of_the_paper() -> None:
    assert display("column", "sigma_times_m", latex=True) == r"$\sigma m$"
    assert display("column", "time_increase_percent", latex=True) == r"time increase, \%"
