"""Tasks of the fair comparison, and the settings that its experiments share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from dpsub.data import ijcnn1
from dpsub.learning.models import Linear, Logistic
from dpsub.reproduce import settings as kinds
from dpsub.reproduce.settings import AnyOf, Name, OneOrMore, Varied
from dpsub.reproduce.study.cells import NONPRIVATE, Targets, check_targets
from dpsub.reproduce.study.tasks import Task

SAMPLERS = (NONPRIVATE, "poisson", "wor", "wr", "must_oo", "must_ow", "must_ww")
TRAIN_SHARE = 0.75


@dataclass(frozen=True)
class FairTask(Task):
    """A task with the settings that are the same for all samplers, noise levels and variants.

    Step sizes and bounds were chosen by looking at training without noise, which should come near
    its end in the steps of the configuration, and at training with WOR batches at one noise level;
    samplers were not compared.

    Attributes
    ----------
    clip : float
        Norm bound C of one record's vector.
    learning_rate : float
        Of DP-SGD; the mean has no use for it.
    measure : str
        What samplers are ranked by, chosen before any run.
    """

    clip: float
    learning_rate: float
    measure: str

    @property
    def classifies(self) -> bool:
        return isinstance(self.model, Logistic)

    @property
    def averages(self) -> bool:
        """Whether the noisy sums themselves are the answer, and nothing is trained."""
        return self.measure == "estimate_error"


def _classification(name: str, n_records: int, features: int, source: str = "") -> FairTask:
    # The other quarter of the records is the test part of each seed's split.
    n = int(TRAIN_SHARE * n_records)
    return FairTask(name, Logistic(features + 1), n, 1.0, 2.0, "log_loss", source=source)


_TASKS = (
    # MUST's experiment 2 has three coefficients, 1000 records and C = 3; its step size is kept.
    FairTask("linear", Linear(3), 1000, 3.0, 0.04, "coefficient_error"),
    _classification("adult", 41292, 13, "adult"),
    _classification("breast_cancer", 569, 30),
    _classification("digits", 1797, 64),
    _classification("ijcnn1", ijcnn1.N_RECORDS, ijcnn1.N_FEATURES, "ijcnn1"),
    # MUST's experiment 1: the mean of 300 standard normal numbers, cut at 4.
    FairTask("bootstrap_mean", Linear(1), 300, 4.0, 1.0, "estimate_error"),
)
TASKS = {task.name: task for task in _TASKS}
"""Tasks by the name that a cell gives as its data set."""


class FairEntry(Targets):
    """All combinations of its values; each setting is one value or a list."""

    dataset: Varied[Name] = Field(
        description="linear, adult, breast_cancer, digits, ijcnn1 or bootstrap_mean."
    )
    samplers: Varied[Name] = Field(
        SAMPLERS,
        description="Names of samplers or schedules (cyclic_poisson:10 with its groups, "
        "truncated_poisson:150 "
        "with its largest batch); stages such as wor:500,wr:200 whose last one leaves m slots; or "
        "nonprivate, which has no target and is computed once for all of them.",
    )
    b: Annotated[AnyOf[kinds.Count], OneOrMore()] = Field(
        (), description="First stages of two-stage samplers."
    )
    steps: Varied[kinds.Iterations] = Field(description="Steps T of DP-SGD.")
    target_delta: Varied[kinds.Delta] = Field((1e-5,), description="δ of the targets.")

    def check(self) -> None:
        check_targets(self.samplers, self.target_epsilon)


def entry(dataset: str, m: int, b: int, steps: int, *target_epsilon: float) -> FairEntry:
    """Return one entry with all samplers at one size."""
    return FairEntry(
        dataset=(dataset,), m=(m,), b=(b,), steps=(steps,), target_epsilon=target_epsilon
    )


class FairGrid(kinds.Group):
    """The cells that are trained."""

    grid: kinds.Several[FairEntry] = Field(
        (
            entry("linear", 100, 200, 200, 0.5, 2),
            entry("adult", 300, 500, 200, 1),
            entry("breast_cancer", 40, 80, 100, 0.5, 2),
            entry("digits", 100, 200, 100, 0.5, 2),
            entry("ijcnn1", 300, 500, 200, 1),
            entry("bootstrap_mean", 30, 50, 200, 1),
            # Three stages: a chain that no paper names, next to those that have one.
            FairEntry(
                dataset=("linear",),
                samplers=("wor:500,wr:200,wor:100",),
                m=(100,),
                steps=(200,),
                target_epsilon=(0.5,),
            ),
        ),
        description="Entries, each standing for all combinations of its values.",
    )
