"""Kinds of settings of this paper's experiments."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

RandomLaws = Annotated[int, Field(ge=1, le=1_000, description="Random laws of sizes to try.")]
