"""Names of this paper in the form in which they are shown."""

from __future__ import annotations

from dpsub.reproduce.labels import display


def test_a_case_begins_with_its_kernel() -> None:
    assert display("case", "lap: D 5, epsilon 4") == "Laplace: D 5, ε 4"
