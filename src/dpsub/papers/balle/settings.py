"""Settings that experiments of this paper share; the paper gives no sizes, these are ours."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import Field

from dpsub.reproduce.experiment import columns
from dpsub.reproduce.settings import Group, Listed, Rates

# Five records in the universe: data sets of up to 4 leave one to substitute.
TinyN = Annotated[int, Field(ge=2, le=4, description="Size of a data set that is enumerated.")]
TinyM = Annotated[int, Field(ge=1, le=3, description="Size of a sample that is enumerated.")]
Examples = Annotated[int, Field(ge=1, le=100_000, description="Random examples.")]
# Below 1/2 the answer is the flipped bit's, and the paper's formula fails (erratum BL4).
KeepProbability = Annotated[float, Field(ge=0.5, lt=1, description="Of an unflipped answer.")]


class Tiny(Group):
    """Universes whose samples and neighbours are all enumerated."""

    n: Listed[TinyN] = (2, 3, 4)
    m: Listed[TinyM] = (1, 2, 3)
    rates: Rates = (0.1, 0.3, 0.7)


# each name has one type in all experiments; what is neither text nor a whole number is a real
# number
TEXT = {
    "check",
    "case",
    "theorem",
    "sampler",
    "base_relation",
    "relation",
    "mechanism",
    "groups",
    "kernel",
    "direction",
    "panel",
    "curve",
    "point",
}
WHOLE = {"replicate", "n", "m", "grows"}
schema = partial(columns, text=TEXT, whole=WHOLE)
