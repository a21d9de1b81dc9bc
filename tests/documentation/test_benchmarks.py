"""The benches name what the package has: each is imported, as `make bench` does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_the_benches_can_be_imported() -> None:
    names = ", ".join(sorted(path.stem for path in BENCHMARKS.glob("*.py") if path.stem != "__init__"))
    run = subprocess.run([sys.executable, "-c", f"import {names}"], cwd=BENCHMARKS, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
