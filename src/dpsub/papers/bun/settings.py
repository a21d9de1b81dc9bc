"""Kinds of settings of this paper's experiments."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dpsub.reproduce.settings import Count

RandomLaws = Annotated[int, Field(ge=1, le=1_000, description="Random laws of sizes to try.")]
ClassNumbers = Annotated[tuple[Count, ...], Field(min_length=2, strict=False, description="One number a class.")]
