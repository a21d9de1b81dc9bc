"""The bound for a sampler, an adjacency relation between samples and one between data sets, and its
value.

JSON: bound, sampler, base, target, eta, epsilon_amplified, epsilon, delta_amplified.
"""

from __future__ import annotations

from argparse import Namespace

from dpsub import checks, noise
from dpsub.accounting.questions.words import Line, near, up
from dpsub.amplification import DeclaredProfile, translate
from dpsub.cli.answers import Answer
from dpsub.cli.parsing import Parser, add_choice, number, numbers
from dpsub.cli.releases import add_mechanism
from dpsub.relations import Relation

ADJACENCIES = ("add_remove", "substitute")


def add_arguments(parser: Parser) -> None:
    add_choice(
        parser, "--sampler", ("poisson", "wor", "wr"), "sampler (default: poisson)", "poisson"
    )
    add_choice(
        parser,
        "--base",
        ADJACENCIES,
        "relation of the base profile, between samples (default: add_remove)",
        "add_remove",
    )
    add_choice(
        parser,
        "--target",
        ADJACENCIES,
        "relation of the result, between data sets (default: add_remove)",
        "add_remove",
    )
    rate = "public rate of Poisson sampling"
    parser.add_argument("--rate", "--sample-rate", type=number, metavar="R", help=rate)
    parser.add_argument("--n", type=number, metavar="N", help="public number of records")
    parser.add_argument(
        "--m", "--batch-size", type=number, metavar="M", help="public size of the sample"
    )
    add_mechanism(parser, noise.REGISTRY.names())
    parser.add_argument(
        "--ratio",
        type=number,
        required=True,
        metavar="R",
        help="sensitivity over noise scale, for one step of the base relation",
    )
    parser.add_argument(
        "--epsilon", type=numbers, required=True, metavar="E", help="epsilon of the result (nats)"
    )


def run(arguments: Namespace) -> Answer:
    target = checks.real("epsilon", arguments.epsilon, at_least=0)
    base = Relation(arguments.base)
    bound = translate(
        arguments.sampler, base, arguments.target, rate=arguments.rate, n=arguments.n, m=arguments.m
    )
    # A profile without its relation is no guarantee: the bound refuses another one than it is for.
    declared = DeclaredProfile.of(noise.of(arguments.mechanism, arguments.ratio), base)
    delta = float(bound.delta(declared, target))
    values = {
        "bound": bound.name,
        "sampler": bound.sampler,
        "base": base.value,
        "target": bound.relation.value,
        "eta": bound.eta,
        "epsilon_amplified": target,
        # eta = 0: no base epsilon is needed, and none is finite.
        "epsilon": float(bound.epsilon_base(target)) if bound.eta > 0 else None,
        "delta_amplified": delta,
    }
    conditions = (
        "one release from one secret sample; noise fixed in advance; sizes and rates public"
    )
    if bound.sampler == "wr" and bound.relation is Relation.ADD_REMOVE:
        # Theorem 11 of Balle et al.: its number depends on n, which neighbours under add_remove do
        # not share.
        conditions += (
            "; valid only for data sets of exactly n records, so not a guarantee "
            "across data sets of different sizes"
        )
    explained: list[Line] = [
        ("bound", bound.name),
        ("epsilon, delta", f"{near(target)}, {up(delta)}  from the sample"),
        ("eta", near(bound.eta)),
        ("kind", "upper bound"),
        ("guarantee", f"yes: under {bound.relation.value}, if the conditions hold"),
        ("conditions", conditions),
    ]
    if bound.remark:
        arguments.remarks.append(bound.remark)
    title = f"{bound.sampler} sampling, from {base.value} to {bound.relation.value}"
    return Answer(values, title, [*explained[:3], ("conditions", conditions)], explained)
