"""Privacy of one release from a sample, (epsilon', delta'), if the same release on all data is
(epsilon, delta)-private.

JSON: epsilon, delta, epsilon_amplified, delta_amplified, eta, category (strong, weak_type_1,
weak_type_2, dilution or boundary).
"""

from __future__ import annotations

from argparse import Namespace

from dpsub import checks, noise
from dpsub.accounting.questions.amplify import covered, law
from dpsub.accounting.questions.words import Line, near, up
from dpsub.accounting.release import described
from dpsub.amplification import amplify, category
from dpsub.cli.answers import Answer
from dpsub.cli.parsing import Parser, number, numbers
from dpsub.cli.releases import add_mechanism
from dpsub.cli.samplers import add_sampler, sampler_of

_CATEGORIES = {
    "strong": "both epsilon and delta shrink",
    "weak_type_1": "epsilon shrinks, delta does not",
    "weak_type_2": "delta shrinks, epsilon does not",
    "dilution": "neither epsilon nor delta shrinks",
    "boundary": "epsilon shrinks, delta is 0 before and after",
}


def add_arguments(parser: Parser) -> None:
    add_sampler(parser)
    add_mechanism(parser, noise.REGISTRY.names())
    scale = parser.add_mutually_exclusive_group(required=True)
    scale.add_argument("--ratio", type=number, metavar="R", help="sensitivity over noise scale")
    multiplier = (
        "noise scale over the norm bound C of one record: ratio 1/S, or 2/S under substitute"
    )
    scale.add_argument("--noise-multiplier", "--sigma", type=number, metavar="S", help=multiplier)
    parser.add_argument(
        "--epsilon", type=numbers, required=True, metavar="E", help="epsilon on all data (nats)"
    )
    parser.add_time_limit()


def run(arguments: Namespace) -> Answer:
    sampler = sampler_of(arguments)
    multiplicity = law(sampler, arguments.n)
    adjacency, exact = covered(sampler, arguments.n)
    ratio = arguments.ratio
    if ratio is None:
        scale = checks.real("noise_multiplier", arguments.noise_multiplier, above=0)
        # A replaced record leaves with up to C and comes with up to C: the sum moves by up to 2 C.
        ratio = (1 if adjacency == "add_remove" else 2) / scale
    amplified = amplify(multiplicity, noise.of(arguments.mechanism, ratio), arguments.epsilon)
    names = ("epsilon", "delta", "epsilon_amplified", "delta_amplified")
    point = {name: float(getattr(amplified, name)) for name in names}
    # Definition 5 of the MUST paper, as the caption of its Figure 3 means it.
    kind = category(**point)
    # Group profiles take the ratio of one occurrence, and multiply it.
    step = (
        "replacing one occurrence of a record in the sample; replacing l occurrences takes "
        "l times the ratio"
    )
    if adjacency == "add_remove":
        step = "adding or removing one record"
    explained: list[Line] = [
        (
            "epsilon",
            f"{near(point['epsilon'])}  on all data,  {up(point['epsilon_amplified'])}  "
            "from the sample",
        ),
        (
            "delta",
            f"{near(point['delta'])}  on all data,  {up(point['delta_amplified'])}  from the "
            "sample",
        ),
        ("eta", near(amplified.eta)),
        ("category", f"{kind}: {_CATEGORIES[kind]}"),
        (
            "kind",
            # Tight over mechanisms with this profile, not for the given one.
            "upper bound, attained by some mechanism with this profile" if exact else "upper bound",
        ),
        (
            "guarantee",
            (
                f"yes: (epsilon, delta) from the sample hold under {adjacency}, if the "
                "conditions hold"
            ),
        ),
        ("relation", adjacency),
        ("sensitivity", f"ratio is for {step}"),
        (
            "conditions",
            "one release from one secret sample; noise fixed in advance; sizes and rates public",
        ),
    ]
    lines: list[Line] = [
        *explained[:2],
        ("eta", f"{near(amplified.eta)}; {kind}: {_CATEGORIES[kind]}"),
        ("kind", dict(explained)["kind"]),
        ("relation", f"{adjacency}; the ratio is for {step.partition(';')[0]}"),
    ]
    values = {**point, "eta": amplified.eta, "category": kind}
    release = f"{arguments.mechanism} release, sensitivity / scale = {near(ratio)}"
    title = f"One {release}, on a sample from {described(sampler, arguments.n)}"
    return Answer(values, title, lines, explained)
