"""An attack on a sampler: two explicit data sets, the densities of their outputs, and a Monte Carlo
run of the real sampler that bounds delta from below, next to the attack's computed value and the
proved upper bound.

The interval counts runs on the first data set, each accepted with probability 1 - exp(epsilon -
loss), where the loss is the log likelihood ratio of all steps. The plain test is coarser: it counts
how often the loss exceeds epsilon on each data set.

JSON: data_sets (first, second: records, record and filler in units of the norm bound C; record null
where absent), densities (first, second: weights, means in units of C; standard_deviation; for a
schedule the probability that each step of an epoch holds the record, how many do, and the shift of
their sums), steps, epsilon, attack (lower, upper: computed delta of the attack), monte_carlo
(draws, seed, confidence, hits, lower, upper, test_hits, test_lower), consistent, and under account
the keys of dpsub account for delta at the epsilon.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import dpsub
from dpsub.accounting.games.static import EpochAttack, StepAttack
from dpsub.accounting.questions.audit import Audit
from dpsub.accounting.questions.words import Line, down, near, plural, relation_text, up
from dpsub.cli.answers import Answer, account_facts, account_values, promise
from dpsub.cli.parsing import Parser, number, numbers, whole_number
from dpsub.cli.releases import add_releases, add_width, question_of, releases_text, steps_of
from dpsub.cli.samplers import add_sampler, sampler_of

_COMPONENTS = 6  # of a density that are shown
_MONTE_CARLO = ("draws", "seed", "confidence", "hits", "lower", "upper", "test_hits", "test_lower")


def add_arguments(parser: Parser) -> None:
    add_sampler(parser)
    # The attack's densities are Gaussian mixtures.
    add_releases(parser, mechanism=False)
    parser.add_argument("--epsilon", type=numbers, required=True, metavar="E", help="nats")
    draws = (
        "number of runs of all steps on each data set (default: 100 to 100000, depending "
        "on their cost)"
    )
    parser.add_argument("--draws", type=whole_number, metavar="N", help=draws)
    parser.add_argument(
        "--seed",
        type=whole_number,
        default=0,
        metavar="SEED",
        help="seed of the draws and the noise (default: 0)",
    )
    parser.add_argument(
        "--confidence",
        type=number,
        default=0.99,
        metavar="P",
        help="confidence level of the intervals (default: 0.99)",
    )
    add_width(parser)


def run(arguments: Namespace) -> Answer:
    sampler = sampler_of(arguments)
    question = question_of(arguments) | {
        name: getattr(arguments, name) for name in ("draws", "seed", "confidence")
    }
    audit = dpsub.audit(sampler, steps=steps_of(arguments, sampler), **question)
    attack = audit.attack
    # The direction in which the attack attains more comes first: its runs are those that are
    # counted.
    sides = {"first": 1, "second": 0} if audit.swapped else {"first": 0, "second": 1}
    values = {
        "data_sets": {side: _data_set(attack, which) for side, which in sides.items()},
        "densities": {side: _density(attack, which) for side, which in sides.items()},
        "steps": arguments.steps,
        "epsilon": arguments.epsilon,
        "attack": {"lower": audit.computed[0], "upper": audit.computed[1]},
        "monte_carlo": {name: getattr(audit.shown, name) for name in _MONTE_CARLO},
        "consistent": audit.consistent,
        "account": account_values(audit.account),
    }
    shown = _shown(audit, arguments.epsilon)
    explained: list[Line] = [
        *((f"{side} data set", _data_text(attack, which)) for side, which in sides.items()),
        *((f"output on {side}", _density_text(attack, which)) for side, which in sides.items()),
        (
            "units",
            "all numbers above are in units of C, the norm bound of a record; every "
            "step releases the noisy sum",
        ),
        *shown,
        *account_facts(audit.account, promise(audit.account, arguments.epsilon)),
    ]
    title = f"Attack on {releases_text(arguments, sampler)}, epsilon = {near(arguments.epsilon)}"
    short = dict(shown)
    lines: list[Line] = [
        ("attack computed", short["attack computed"]),
        ("attack, real draws", short["attack, real draws"][0]),
        ("proved upper bound", f"{short['proved upper bound']} ({audit.account.theorem})"),
        ("verdict", short["verdict"]),
        ("relation", relation_text(audit.account)),
    ]
    return Answer(values, title, lines, explained)


def _data_set(attack: StepAttack | EpochAttack, which: int) -> dict[str, Any]:
    record = attack.records[which]
    # Removed: the second data set has the records that differ less than the first.
    records = attack.n_records[0] - attack.group[0] if record is None else attack.n_records[which]
    return {"records": records, "record": record, "filler": attack.neighbours.filler}


def _density(attack: StepAttack | EpochAttack, which: int) -> dict[str, Any]:
    if isinstance(attack, EpochAttack):
        return {
            "weights": attack.weights,
            "steps": attack.k,
            "shift": attack.shifts[which],
            "standard_deviation": attack.noise_multiplier,
        }
    weights, means = attack.density(which)
    return {"weights": weights, "means": means, "standard_deviation": attack.noise_multiplier}


def _shown(audit: Audit, epsilon: float) -> list[Line]:
    """The delta of the attack: computed, from real draws, and next to the proved bound."""
    shown = audit.shown
    percent = f"{100 * shown.confidence:g} % confidence"
    draws = [
        f"delta in [{down(shown.lower)}, {up(shown.upper)}] at {percent} (Clopper-Pearson)",
        f"{shown.hits} of {plural(shown.draws, 'run')} accepted by the likelihood ratio, seed "
        f"{shown.seed}",
    ]
    # Clopper-Pearson: without an accepted run nothing above 0 is shown.
    if shown.lower == 0:
        draws.append("too few runs for so small a delta: raise --draws or lower --epsilon")
    first, second = shown.test_hits
    # Needs no density of the attack: any event has at least this difference, by counting alone.
    test = (
        f"delta >= {down(shown.test_lower)}, without using the densities: the loss "
        f"exceeds {near(epsilon)} in {first} runs on the first data set and in {second} "
        "on the second"
    )
    verdict = "consistent: the interval meets the attack's value and stays below the proved bound"
    # At 99 % confidence one audit in a hundred does so by chance; two seeds in a row mean a fault.
    if not audit.consistent:
        way_out = "repeat with another --seed and more --draws"
        verdict = f"INCONSISTENT: at {percent} draws, attack and bound disagree; {way_out}"
    quick = "" if audit.account.upper == audit.quick else f"  (quick: {up(audit.quick)})"
    return [
        ("attack computed", f"delta in [{down(audit.computed[0])}, {up(audit.computed[1])}]"),
        ("attack, real draws", draws),
        ("plain test", test),
        (
            "best attack known",
            f"delta >= {down(audit.account.lower)}  ({audit.account.lower_pair})",
        ),
        ("proved upper bound", f"delta <= {up(audit.account.upper)}{quick}"),
        ("verdict", verdict),
    ]


def _data_text(attack: StepAttack | EpochAttack, which: int) -> str:
    def in_units(value: float) -> str:
        return "0" if value == 0 else f"{'+' if value > 0 else '-'}C"

    count, record, filler = _data_set(attack, which).values()
    size = attack.group[which]
    n_others = count if record is None else count - size
    others = f"the others {in_units(filler)}" if n_others > 0 else "no others"
    unit = "the record" if size == 1 else f"the {size} records of the unit"
    if record is None:
        return f"{plural(count, 'record')}: {unit} {'is' if size == 1 else 'are'} absent, {others}"
    return f"{plural(count, 'record')}: {unit} {in_units(record)}, {others}"


def _density_text(attack: StepAttack | EpochAttack, which: int) -> str:
    if isinstance(attack, EpochAttack):
        shift, steps = attack.shifts[which], len(attack.weights)
        sums = (
            f"N(0, {near(attack.noise_multiplier)}^2) at every step of an epoch, after "
            "the sum of the fillers is subtracted"
        )
        if shift == 0:
            return sums
        where = (
            f"{attack.k} of {steps} steps"
            if steps > 1
            else (f"one step, with chance {near(attack.weights[0])}")
        )
        return f"{sums}; moved by {near(shift)} at {where}"
    weights, means = attack.density(which)
    deviation = near(attack.noise_multiplier)
    # The heaviest components, in the order of their means.
    largest = sorted(sorted(range(len(weights)), key=lambda i: -weights[i])[:_COMPONENTS])
    terms = [
        f"{near(float(weights[i]))} N({near(float(means[i]))}, {deviation}^2)" for i in largest
    ]
    if len(weights) == 1:
        return terms[0].removeprefix("1 ")
    others = len(weights) - len(largest)
    if others > 0:
        terms.append(
            f"{plural(others, 'component')} of weight {1 - float(weights[largest].sum()):.2g}"
        )
    return " + ".join(terms)
