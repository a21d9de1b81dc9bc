"""Noise of both samplers, and what the accountant would make of its example."""

from __future__ import annotations

from dpsub.reproduce.layout import Layout
from dpsub.reproduce.tables import Part, Table


class NoiseTable(Table):
    title = "Noise of k of t steps and of Poisson samples in trainings of the repository"
    name = "noise"
    caption = (
        "Noise multipliers where a record is replaced by 0. Proved: this noise keeps ε and δ. "
        "Refuted: with this noise an attack exceeds them. example: 5 of 391 steps, ε = 8, δ = "
        "1.25e-5. cluster: 205 of 10,000 steps, ε = 8, δ = 1e-5. benchmark: 655 of 2000 steps, ε = "
        "3, δ = 1e-5. short, of our own: 5 of 100 steps, ε = 8, δ = 1e-5. Poisson samples have the "
        "rate k/t. The paper's own tables of noise cannot be read."
    )
    keys = ("training", "sampler")
    layout = Layout(stub=("training", "sampler"), heads=("column",))
    parts = (
        Part(
            "dong_noise",
            {name: name for name in ("noise_lower", "noise_upper")},
            variant="stated",
        ),
    )


class CandidatesTable(Table):
    title = "The Monte Carlo accountant on the repository's example"
    name = "candidates"
    caption = (
        "δ of a record in 5 of 391 steps, for the three noise multipliers that the repository's "
        "example tries: estimates from 100,000 draws with the record (forward) and without it "
        "(reverse), where at least 50 draws are expected to count, and our two bounds on the "
        "larger one. base: an estimate from 2,000,000 draws must stay below this value, so that "
        "the whole procedure keeps the example's δ = 1.25e-5 at ε = 8."
    )
    keys = ("noise", "epsilon")
    layout = Layout(stub=("noise", "epsilon"), heads=("column",))
    parts = (
        Part(
            "dong_candidates",
            {
                name: name
                for name in (
                    *("forward", "forward_error", "reverse", "reverse_error"),
                    *("base", "delta_lower", "delta_upper"),
                )
            },
            variant="stated",
        ),
    )


class TwoStepsTable(Table):
    title = "Two steps: one of them, or each with probability 1/2"
    name = "two_steps"
    caption = (
        "δ of a record that takes part in one of two steps, by one integral and by our two bounds, "
        "and of one that takes part in each of them with probability 1/2 (poisson), by noise and "
        "ε. At large δ Poisson samples have the smaller one: their record may take no part at all."
    )
    keys = ("noise", "epsilon")
    layout = Layout(stub=("noise", "epsilon"), heads=("column",))
    parts = (
        Part(
            "dong_two_steps",
            {
                name: name
                for name in (
                    *("one", "one_lower", "one_upper"),
                    *("poisson", "poisson_lower", "poisson_upper"),
                )
            },
            variant="stated",
        ),
    )
