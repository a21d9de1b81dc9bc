"""The releases of the study, and the meaning that each accountant gives its answer."""

from __future__ import annotations

import itertools
from typing import Literal

from pydantic import Field

from dpsub.errors import ArgumentError
from dpsub.reproduce import settings as kinds

UPPER, ESTIMATE, LOWER = "upper bound", "estimate", "lower bound"
# Its documentation leaves open in which unit it takes the noise.
ONE_READING = "upper bound in one reading"
CONFIDENT = "upper bound with confidence"
KEYS = (
    "mechanism",
    "sampler",
    "adjacency",
    "rate",
    "n",
    "m",
    "noise_multiplier",
    "steps",
    "delta",
    "accountant",
)
"""Columns that name an answer of an accountant."""
PACKAGE_KEYS = (*KEYS, "version")
"""Columns that name an answer that is recorded for one of several versions of a package."""
ACCOUNTANTS = {
    "dp-accounting RDP": UPPER,
    "dp-accounting RDP, noise over 2 C": UPPER,
    "dp-accounting PLD": UPPER,
    "prv-accountant upper": UPPER,
    "prv-accountant estimate": ESTIMATE,
    "prv-accountant lower": LOWER,
    "autodp RDP": UPPER,
    "autodp Gaussian": UPPER,
}
"""Accountant -> the meaning of its epsilon by its documentation. An estimate is judged as an upper
bound, because it is reported as one. "noise over 2 C": the accountant was given the noise divided
by the L2 sensitivity 2 C of a substitution; its documentation asks for the noise divided by the
norm bound C of a record."""


class AccountingQuestion(kinds.Closed):
    """Releases of one kind, and the delta at which epsilon is asked for."""

    sampler: Literal["poisson", "wor", "truncated_poisson", "random_allocation", "shuffle"] = Field(
        description="Poisson sampling (at rate 1: no sampling), samples of fixed size, Poisson "
        "samples cut at a largest size, one of all steps for each record, or shuffled batches."
    )
    mechanism: Literal["gaussian", "laplace"] = Field("gaussian", description="Noise.")
    adjacency: Literal["add_remove", "substitute", "zero_out"] = Field(
        "add_remove", description="Adjacency relation."
    )
    rate: float = Field(
        0, ge=0, le=1, description="Rate of Poisson sampling, cut or not; 0 for other samplers."
    )
    n: int = Field(0, ge=0, description="Number of records; 0 where it does not matter.")
    m: int = Field(0, ge=0, description="Size of samples, or the largest one; 0 for others.")
    noise_multiplier: kinds.NoiseMultiplier
    steps: kinds.Releases
    delta: kinds.Delta

    def check(self) -> None:
        # 0 stands for "does not apply", so that all settings have the same fields and the recorded
        # answers one key.
        given = (self.rate > 0, 0 < self.m <= self.n, self.n == self.m == 0)
        needed = {
            "poisson": (True, False, True),
            "wor": (False, True, False),
            "truncated_poisson": (True, True, False),
            "random_allocation": (False, False, True),
            "shuffle": (False, True, False),
        }
        if given != needed[self.sampler]:
            raise ArgumentError(
                "poisson needs a rate above 0 and wor 0 < m <= n, as does shuffle, "
                "truncated_poisson both and random_allocation neither, got sampler = "
                f"{self.sampler}, rate = {self.rate:g}, n = {self.n}, m = {self.m}"
            )

    @property
    def given(self) -> dict[str, object]:
        """The fields that are not 0, which a question of this kind does not need."""
        return {name: value for name, value in self.model_dump().items() if value != 0}


def poisson(rate: float, noise: float, steps: int, delta: float) -> AccountingQuestion:
    """Return Poisson samples with Gaussian noise, a record added or removed."""
    return AccountingQuestion(
        sampler="poisson", rate=rate, noise_multiplier=noise, steps=steps, delta=delta
    )


def wor(n: int, m: int, noise: float, steps: int, delta: float) -> AccountingQuestion:
    """Return samples without replacement with Gaussian noise, a record replaced."""
    return AccountingQuestion(
        sampler="wor",
        adjacency="substitute",
        n=n,
        m=m,
        noise_multiplier=noise,
        steps=steps,
        delta=delta,
    )


def replaced(noise: float, steps: int, delta: float) -> AccountingQuestion:
    """Return sums over all records with Gaussian noise, a record replaced."""
    return AccountingQuestion(
        sampler="poisson",
        rate=1,
        adjacency="substitute",
        noise_multiplier=noise,
        steps=steps,
        delta=delta,
    )


def laplace(rate: float, noise: float, steps: int, delta: float) -> AccountingQuestion:
    """Return Poisson samples with Laplace noise, a record added or removed."""
    return AccountingQuestion(
        sampler="poisson",
        mechanism="laplace",
        rate=rate,
        noise_multiplier=noise,
        steps=steps,
        delta=delta,
    )


GRID = (
    *(
        poisson(*point)
        for point in (
            # Usual rates, noises and numbers of steps of training with DP-SGD, then corners: little
            # noise, many steps, large rates, small delta.
            *itertools.product((0.001, 0.01, 0.1), (0.8, 1.0, 2.0), (100, 1000), (1e-5,)),
            (0.01, 0.6, 100, 1e-6),
            (0.01, 4.0, 10_000, 1e-6),
            (0.5, 4.0, 10, 1e-5),
            (0.5, 1.0, 1, 1e-5),
            (0.004, 1.0, 5000, 1e-8),
            (0.05, 3.0, 300, 1e-10),
        )
    ),
    *(
        wor(*point)
        for point in (
            # The first case of erratum P1, then with more and more noise.
            (1000, 16, 1.0, 128, 1e-6),
            (1000, 16, 2.0, 128, 1e-6),
            (1000, 16, 4.0, 128, 1e-6),
            (1000, 16, 8.0, 128, 1e-6),
            (10_000, 200, 1.0, 1000, 1e-5),
            (10_000, 200, 2.0, 1000, 1e-5),
            (10_000, 200, 4.0, 1000, 1e-5),
            (10_000, 200, 8.0, 1000, 1e-5),
            (10_000, 200, 4.0, 100, 1e-5),
            (10_000, 200, 4.0, 1, 1e-5),
            # Sizes of MNIST and CIFAR-10, mostly ten epochs of usual batches.
            (60_000, 256, 1.0, 2344, 1e-5),
            (60_000, 256, 2.0, 2344, 1e-5),
            (60_000, 256, 1.0, 1, 1e-5),
            (50_000, 500, 1.0, 1000, 1e-6),
            (50_000, 500, 4.0, 1000, 1e-6),
            (50_000, 120, 1.0, 4160, 1e-5),
            (500, 50, 3.0, 40, 1e-4),
            (100, 50, 5.0, 20, 1e-4),
            (1000, 100, 10.0, 100, 1e-8),
            (1000, 10, 20.0, 1000, 1e-6),
        )
    ),
    # Rate 1: no sampling, where epsilon of Gaussian noise is known in closed form.
    *(poisson(1, *point) for point in itertools.product((5.0, 10.0), (1, 100), (1e-5,))),
    *(replaced(*point) for point in itertools.product((5.0, 10.0), (1, 100), (1e-5,))),
    *(
        laplace(*point)
        for point in (
            # Laplace noise without sampling first, where two estimates are refuted (erratum P2).
            (1.0, 2.0, 1, 1e-5),
            (1.0, 20.0, 100, 1e-5),
            (1.0, 50.0, 1000, 1e-6),
            (1.0, 5.0, 10, 1e-5),
            (0.1, 2.0, 100, 1e-5),
            (0.1, 20.0, 100, 1e-5),
            (0.01, 1.0, 1000, 1e-5),
            (0.01, 2.0, 1000, 1e-6),
        )
    ),
)
"""The grid of the study."""


def cut(n: int, rate: float, m: int, noise: float, steps: int, delta: float) -> AccountingQuestion:
    """Return Poisson samples cut at m records, a record added or removed."""
    return AccountingQuestion(
        sampler="truncated_poisson",
        rate=rate,
        n=n,
        m=m,
        noise_multiplier=noise,
        steps=steps,
        delta=delta,
    )


def allocated(noise: float, steps: int, delta: float) -> AccountingQuestion:
    """Return one epoch in which each record is in one step, a record added or removed."""
    return AccountingQuestion(
        sampler="random_allocation", noise_multiplier=noise, steps=steps, delta=delta
    )


def shuffled(n: int, m: int, noise: float, epochs: int, delta: float) -> AccountingQuestion:
    """Return shuffled batches, which m divides into whole ones, a record zeroed."""
    return AccountingQuestion(
        sampler="shuffle",
        adjacency="zero_out",
        n=n,
        m=m,
        noise_multiplier=noise,
        steps=epochs * n // m,
        delta=delta,
    )


def under(adjacency: str, question: AccountingQuestion) -> AccountingQuestion:
    """Return the same releases under another relation."""
    return AccountingQuestion(**{**question.model_dump(), "adjacency": adjacency})


QUESTIONS = (
    # Opacus' issue 643, where its accountants disagree.
    poisson(0.2, 3.0, 50, 1 / 48_000),
    *(
        poisson(*point)
        for point in (
            (0.001, 0.8, 1000, 1e-5),
            (0.01, 0.8, 100, 1e-5),
            (0.01, 1.0, 1000, 1e-5),
            (0.01, 2.0, 1000, 1e-5),
            (0.1, 1.0, 100, 1e-5),
            (0.1, 2.0, 1000, 1e-5),
            (0.01, 0.6, 100, 1e-6),
            (0.01, 4.0, 10_000, 1e-6),
            (0.5, 4.0, 10, 1e-5),
            (0.5, 1.0, 1, 1e-5),
            (0.004, 1.0, 5000, 1e-8),
            (0.05, 3.0, 300, 1e-10),
        )
    ),
    *(
        under(adjacency, poisson(*point))
        for adjacency in ("zero_out", "substitute")
        for point in ((0.01, 1.0, 1000, 1e-5), (0.1, 2.0, 1000, 1e-5))
    ),
    *(
        wor(*point)
        for point in (
            (1000, 16, 1.0, 128, 1e-6),
            (1000, 16, 4.0, 128, 1e-6),
            (10_000, 200, 4.0, 1000, 1e-5),
            (60_000, 256, 1.0, 2344, 1e-5),
            (500, 50, 3.0, 40, 1e-4),
            (100, 50, 5.0, 20, 1e-4),
        )
    ),
    *(under(adjacency, wor(1000, 16, 1.0, 128, 1e-6)) for adjacency in ("zero_out", "add_remove")),
    poisson(1, 5.0, 1, 1e-5),
    poisson(1, 10.0, 100, 1e-5),
    replaced(5.0, 1, 1e-5),
    replaced(10.0, 100, 1e-5),
    *(
        laplace(*point)
        for point in (
            (1.0, 2.0, 1, 1e-5),
            (1.0, 5.0, 10, 1e-5),
            (1.0, 20.0, 100, 1e-5),
            (0.1, 20.0, 100, 1e-5),
        )
    ),
    cut(999, 0.05, 70, 1.0, 100, 1e-5),
    cut(999, 0.05, 90, 1.0, 100, 1e-5),
    allocated(1.0, 100, 1e-5),
    allocated(4.0, 10, 1e-5),
    allocated(0.8, 1000, 1e-6),
    under("zero_out", allocated(4.0, 10, 1e-5)),
    shuffled(60_000, 60, 1.0, 1, 1e-5),
    shuffled(60_000, 60, 2.0, 1, 1e-5),
    shuffled(60_000, 600, 4.0, 1, 1e-5),
)
"""The questions that all packages are asked."""


class Epochs(kinds.Closed):
    """Epochs of one size, and a record that is replaced or zeroed."""

    adjacency: Literal["zero_out", "substitute"] = Field(description="Adjacency relation.")
    n: kinds.FrameSize = 60_000
    m: kinds.SampleSize
    epochs: int = Field(ge=1, le=10_000, description="Passes over the records.")


# 60,000 records in 1000 or 100 batches.
SHUFFLED = tuple(
    Epochs(adjacency=adjacency, m=m, epochs=epochs)
    for adjacency in ("zero_out", "substitute")
    for m, epochs in ((60, 1), (60, 30), (600, 30))
)
"""Settings of the comparison of shuffled batches with Poisson samples."""


class StatedEpochs(Epochs):
    """Epochs about which somebody states a number."""

    noise_multiplier: kinds.NoiseMultiplier
    delta: float = Field(
        0, ge=0, lt=1, description="delta at which epsilon is asked for; 0: delta at epsilon = 0."
    )
    least: float = Field(0, ge=0, description="Stated lower bound.")
    most: float = Field(gt=0, description="Stated upper bound.")


FIVE_EPOCHS = tuple(
    StatedEpochs(
        adjacency="zero_out",
        m=60,
        epochs=5,
        noise_multiplier=noise,
        delta=1e-8,
        least=least,
        most=most,
    )
    for noise, least, most in ((1.0, 6.423, 7.97), (2.0, 0.338, 0.71))
)
LONG_EPOCH = StatedEpochs(
    adjacency="substitute", n=1_140_000, m=1, epochs=1, noise_multiplier=1.0, most=0.01
)
STATEMENTS = (*FIVE_EPOCHS, LONG_EPOCH)


class Units(kinds.Closed):
    """Poisson sampling with users that hold several records."""

    rate: float = Field(default=0.01, gt=0, le=1, description="Inclusion probability of a record.")
    noise_multiplier: kinds.NoiseMultiplier
    steps: int = Field(ge=1, description="Number of steps.")


UNITS = (Units(noise_multiplier=1.0, steps=1000), Units(noise_multiplier=2.0, steps=10_000))
"""Settings of the comparison of bounds for groups."""
GROUPS = (1, 2, 4, 8)
# From small noise, where amplification has least to give, to large noise, where it has most.
NOISES = (0.4, 0.55, 0.7, 0.85, 1.0, 1.4, 2.0)
