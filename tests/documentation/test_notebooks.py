"""The worked notebooks run as they stand, without a warning, and what their text says of the
numbers is true."""

from __future__ import annotations

import runpy

import matplotlib as mpl
import pytest
from matplotlib import pyplot

from tests.documentation.console import ROOT

NOTEBOOKS = ROOT / "docs/notebooks"


def test_the_training_plan_ends_in_a_sentence_that_holds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pyplot, "show", lambda: None)
    with mpl.rc_context({"backend": "agg"}):
        told = runpy.run_path(str(NOTEBOOKS / "training_plan.py"))
        pyplot.close("all")
    assert told["printed"].upper < told["proved"].lower <= told["proved"].upper
    assert (
        told["promise"].upper
        <= told["target"]
        < told["account"]("Poisson, record replaced", told["found"].refuted).upper
    )
    said = " ".join(capsys.readouterr().out.split())
    assert said.count(f"noise multiplier {told['needed']:.3f}") == 1
    assert f"deviation {told['needed']:.3f} x {told['clip']}" in said
    assert "one replaced record" in said and "(2, 1e-06)-differentially private" in said
    assert all(condition in said for condition in told["promise"].conditions)


def test_each_notebook_is_told_of_here() -> None:
    assert [path.name for path in NOTEBOOKS.glob("*.py")] == ["training_plan.py"]
