"""Settings of all tests: generated examples are the same in every run, and slow machines do not fail by the clock."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("dpsub", deadline=None, derandomize=True, database=None, max_examples=60)
settings.load_profile("dpsub")
