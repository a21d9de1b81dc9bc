"""The attack that shows what a sampler leaks: two explicit data sets, the densities of their outputs, and a Monte Carlo
run of the real sampler that bounds delta from below, next to the attack's computed value and the proved upper bound.

The interval counts runs on the first data set that are accepted with probability 1 - exp(epsilon - loss), the loss
being the log likelihood ratio of all steps; the plain test, which is coarser, asks how often the loss exceeds epsilon
on either.

JSON: data_sets (first, second: records, record and filler in units of the norm bound C; record null where absent),
densities (first, second: weights, means in units of C; standard_deviation), steps, epsilon, attack (lower, upper:
computed delta of the attack), monte_carlo (draws, seed, confidence, hits, lower, upper, test_hits, test_lower),
consistent, and under account the keys of dpsub account for delta at the epsilon.
"""

from __future__ import annotations

from argparse import Namespace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from dpsub.cli.answers import Answer, Line, account_lines, account_values, down, near, plural, up
from dpsub.cli.parsing import Parser, number, numbers, whole
from dpsub.cli.releases import add_releases, asked, releases_text, steps_of
from dpsub.cli.samplers import add_sampler, sampler_of

if TYPE_CHECKING:
    from dpsub.accounting.audit import Attack, Audit, MonteCarlo

_COMPONENTS = 6
_MONTE_CARLO = ("draws", "seed", "confidence", "hits", "lower", "upper", "test_hits", "test_lower")


def add_arguments(parser: Parser) -> None:
    add_sampler(parser)
    add_releases(parser, mechanism=False)
    parser.add_argument("--epsilon", type=numbers, required=True, metavar="E", help="nats")
    draws = "runs of all steps on each data set (default: 100 to 100000, by their cost)"
    parser.add_argument("--draws", type=whole, metavar="N", help=draws)
    parser.add_argument("--seed", type=whole, default=0, metavar="SEED", help="of the draws and the noise (default: 0)")
    parser.add_argument("--confidence", type=number, default=0.99, metavar="P", help="of the intervals (default: 0.99)")
    parser.add_time_limit()


def run(arguments: Namespace) -> Answer:
    import dpsub
    from dpsub.accounting.account import deadline_after
    from dpsub.accounting.pld import time_limited

    started = perf_counter()
    sampler = sampler_of(arguments)
    question = asked(arguments) | {name: getattr(arguments, name) for name in ("draws", "seed", "confidence")}
    with time_limited(deadline_after(question.pop("time_limit"))):
        found = dpsub.audit(sampler, steps=steps_of(arguments, sampler), **question)
    seconds = perf_counter() - started
    order = (1, 0) if found.swapped else (0, 1)
    shown = found.shown
    values = {
        "data_sets": dict(zip(("first", "second"), (_data_set(found.attack, i) for i in order), strict=True)),
        "densities": dict(zip(("first", "second"), (_density(found.attack, i) for i in order), strict=True)),
        "steps": arguments.steps,
        "epsilon": arguments.epsilon,
        "attack": {"lower": found.computed[0], "upper": found.computed[1]},
        "monte_carlo": {name: getattr(shown, name) for name in _MONTE_CARLO},
        "consistent": found.consistent,
        "account": account_values(found.account, seconds),
    }
    title = f"Attack on {releases_text(arguments, sampler)}, epsilon = {near(arguments.epsilon)}"
    return Answer(values, title, _lines(found, order, arguments.epsilon, seconds))


def _data_set(attack: Attack, which: int) -> dict[str, Any]:
    record = attack.records[which]
    records = attack.n_records[0] - 1 if record is None else attack.n_records[which]
    return {"records": records, "record": record, "filler": attack.filler}


def _density(attack: Attack, which: int) -> dict[str, Any]:
    weights, means = attack.density(which)
    return {"weights": weights, "means": means, "standard_deviation": attack.noise_multiplier}


def _lines(found: Audit, order: tuple[int, int], epsilon: float, seconds: float) -> list[Line]:
    attack, shown = found.attack, found.shown
    percent = f"{100 * shown.confidence:g} % confidence"
    verdict = (
        "consistent: the interval meets the attack's value and stays below the proved bound"
        if found.consistent
        else f"INCONSISTENT: at {percent} draws, attack and bound disagree; repeat with another --seed and more --draws"
    )
    return [
        ("first data set", _data_text(attack, order[0])),
        ("second data set", _data_text(attack, order[1])),
        ("output on first", _density_text(attack, order[0])),
        ("output on second", _density_text(attack, order[1])),
        ("units", "all numbers above in units of C, the norm bound of a record; every step releases the noisy sum"),
        ("attack computed", f"delta in [{down(found.computed[0])}, {up(found.computed[1])}]"),
        ("attack, real draws", _shown_text(shown, percent)),
        ("plain test", _test_text(shown, epsilon)),
        ("best attack known", f"delta >= {down(found.account.lower)}  ({found.account.lower_pair})"),
        ("proved upper bound", f"delta <= {up(found.account.upper)}"),
        ("verdict", verdict),
        *account_lines(found.account, epsilon, seconds)[2:],
    ]


def _data_text(attack: Attack, which: int) -> str:
    count, record, _ = _data_set(attack, which).values()
    n_others = count if record is None else count - 1
    others = f"the others {_value(attack.filler)}" if n_others > 0 else "no others"
    return f"{plural(count, 'record')}: the record {'is absent' if record is None else _value(record)}, {others}"


def _value(units: float) -> str:
    return "0" if units == 0 else f"{'+' if units > 0 else '-'}C"


def _density_text(attack: Attack, which: int) -> str:
    weights, means = attack.density(which)
    deviation = near(attack.noise_multiplier)
    largest = sorted(sorted(range(len(weights)), key=lambda i: -weights[i])[:_COMPONENTS])
    terms = [f"{near(float(weights[i]))} N({near(float(means[i]))}, {deviation}^2)" for i in largest]
    if len(weights) == 1:
        return terms[0].removeprefix("1 ")
    others = len(weights) - len(largest)
    if others > 0:
        terms.append(f"{plural(others, 'component')} of weight {1 - float(weights[largest].sum()):.2g}")
    return " + ".join(terms)


def _shown_text(shown: MonteCarlo, percent: str) -> list[str]:
    rows = [
        f"delta in [{down(shown.lower)}, {up(shown.upper)}] at {percent} (Clopper-Pearson)",
        f"{shown.hits} of {plural(shown.draws, 'run')} accepted by the likelihood ratio, seed {shown.seed}",
    ]
    if shown.lower == 0:
        rows.append("too few runs to see so small a delta: raise --draws, or lower --epsilon")
    return rows


def _test_text(shown: MonteCarlo, epsilon: float) -> str:
    first, second = shown.test_hits
    return (
        f"delta >= {down(shown.test_lower)}, whatever the densities: the loss exceeds {near(epsilon)} in {first} runs "
        f"on the first data set and in {second} on the second"
    )
