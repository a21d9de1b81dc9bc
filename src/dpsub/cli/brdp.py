"""Budget recycling: noise that is redrawn, with probability q, while it lies outside [-bound,
bound].

Finds the kernel scale and the recycling rate with the largest acceptance (probability that the
noise lies within the bound) whose exact privacy stays within the budget. Shown next to it: plain
noise, the parameters of the paper's algorithms with their exact delta, and, for one release, the
largest acceptance of any symmetric unimodal noise. With --steps all releases share the budget.
--scale fixes the kernel; with --scale and --rate nothing is chosen and the delta of that recycler
is given.

JSON: kernel, scale, rate, acceptance, sd, plain_scale, plain_acceptance, paper_kernel_epsilon,
paper_scale, paper_rate, paper_acceptance, paper_delta (the exact delta of the paper's parameters,
rounded up), ceiling, as_good (whether plain noise is as good), verdict, epsilon, delta,
compositions, and the keys of dpsub account for delta at epsilon of the recycler named first. The
paper's keys are null if its algorithms end at rate 1, which its composition theorem does not cover.
With --scale the keys of plain noise, paper, ceiling and verdict are null.
"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpsub import checks
from dpsub.accounting.questions.words import Line, down, near, plural, up
from dpsub.accounting.questions.words import account_lines as short_lines
from dpsub.cli.answers import Answer, account_lines, account_values
from dpsub.cli.parsing import Parser, add_choice, number, numbers, whole_number
from dpsub.cli.releases import ADJACENCIES
from dpsub.errors import ArgumentError

if TYPE_CHECKING:
    from dpsub.recycling.advice import RecyclingAdvice

RENAMED = {"--compositions": "--steps"}
_COMPARED = {
    "plain_scale": "plain.law.kernel.scale",
    "plain_acceptance": "plain.acceptance",
    "paper_kernel_epsilon": "paper.kernel_epsilon",
    "paper_scale": "paper.law.kernel.scale",
    "paper_rate": "paper.law.rate",
    "paper_acceptance": "paper.acceptance",
    "paper_delta": "paper_delta",
    "ceiling": "ceiling.upper",
    "as_good": "as_good",
    "verdict": "verdict",
}
"""Keys of JSON that compare the choice with others, and the attributes of an advice they are."""


def add_arguments(parser: Parser) -> None:
    add_choice(
        parser,
        "--kernel",
        ("gaussian", "laplace"),
        "distribution of the recycled noise (default: gaussian)",
        "gaussian",
    )
    parser.add_argument(
        "--sensitivity",
        type=number,
        required=True,
        metavar="D",
        help="sensitivity of the query, above 0, in its units",
    )
    parser.add_argument(
        "--bound", type=number, required=True, metavar="B", help="noise in [-B, B] is accepted"
    )
    parser.add_argument(
        "--epsilon", type=numbers, required=True, metavar="E", help="target epsilon (nats), above 0"
    )
    parser.add_argument("--delta", type=numbers, required=True, metavar="D", help="between 0 and 1")
    parser.add_argument(
        "--steps",
        type=whole_number,
        default=1,
        metavar="K",
        help="number of releases that share the budget",
    )
    parser.add_argument(
        "--scale", type=number, metavar="S", help="scale of the kernel, instead of the best one"
    )
    parser.add_argument(
        "--rate",
        type=number,
        metavar="Q",
        help="recycling rate in [0, 1]; needs --scale, and gives the delta of this recycler",
    )
    add_choice(
        parser,
        "--adjacency",
        ADJACENCIES,
        "adjacency relation of the sensitivity (default: substitute)",
        "substitute",
    )
    # a search with a proof at each trial
    parser.add_effort(30.0)


def run(arguments: Namespace) -> Answer:
    from dpsub.accounting.engine import work

    with work.metered(work.effort(arguments.effort)):
        return _answered(arguments)


def _answered(arguments: Namespace) -> Answer:
    from dpsub.accounting.engine import work
    from dpsub.recycling import composition
    from dpsub.recycling.advice import advise
    from dpsub.recycling.choice import checked_budget, largest_rate
    from dpsub.recycling.kernels import FAMILIES
    from dpsub.recycling.law import Recycled

    family, bound, span = FAMILIES[arguments.kernel], arguments.bound, arguments.sensitivity
    epsilon, delta = checked_budget(arguments.epsilon, arguments.delta)
    times = checks.integer("steps", arguments.steps, at_least=1, at_most=composition.MOST_STEPS)
    advice: RecyclingAdvice | None = None
    if arguments.scale is None:
        # A rate alone fixes nothing: whether it keeps the budget depends on the scale.
        if arguments.rate is not None:
            raise ArgumentError(
                "--rate needs --scale, got none; give the scale of the kernel or drop the rate"
            )
        advice = advise(family, epsilon, delta, bound, span, times)
        law = advice.optimum.law
    elif arguments.rate is None:
        checks.real("bound", bound, above=0)
        with work.share(3 / 4):
            law = largest_rate(
                family(arguments.scale), epsilon, delta, -bound, bound, span, times
            ).law
    else:
        law = Recycled.within(family(arguments.scale), arguments.rate, bound, span)
    account = composition.account(
        law,
        times,
        epsilon=epsilon,
        adjacency=arguments.adjacency,
        width=5e-4,
    )
    if arguments.rate is None and times > 1:
        # The choice was proved by this bound, which may be smaller than that of the account.
        proved = composition.upper_delta(law, times, epsilon)
        account = replace(
            account, lower=min(account.lower, proved), upper=min(account.upper, proved)
        )
    values = {
        "kernel": arguments.kernel,
        "scale": law.kernel.scale,
        "rate": law.rate,
        "acceptance": law.acceptance,
        "sd": law.sd,
        **{name: _at(advice, path) for name, path in _COMPARED.items()},
        "epsilon": epsilon,
        "delta": delta,
        "compositions": times,
        **account_values(account),
    }
    explained: list[Line] = [
        ("kernel scale", near(law.kernel.scale)),
        ("recycling rate", near(law.rate)),
        (
            "acceptance",
            f"{down(law.acceptance)}  (noise within the bound; standard deviation {near(law.sd)})",
        ),
        *([] if advice is None else _lines(advice)),
        *account_lines(account, epsilon),
    ]
    budget = f"within {near(bound)}, epsilon {near(epsilon)}, delta {near(delta)}"
    what = f"{arguments.kernel} noise for {plural(times, 'release')} of sensitivity {near(span)}"
    recycler = (
        f"kernel scale {near(law.kernel.scale)}, recycling rate {near(law.rate)}, acceptance "
        f"{down(law.acceptance)}"
    )
    lines: list[Line] = [("recycler", recycler), *short_lines(account)]
    if advice is not None:
        lines.append(("verdict", advice.verdict))
    return Answer(values, f"Recycled {what} {budget}", lines, explained)


def _at(value: Any, path: str) -> Any:
    """The value at a path of attributes; None if one of them is None."""
    # The paper has no parameters where its algorithms end at rate 1, and none are compared with a
    # given scale.
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
    return value


def _lines(advice: RecyclingAdvice) -> list[Line]:
    paper = f"none: {advice.no_paper}"
    if advice.paper is not None and advice.paper_delta is not None:
        law = advice.paper.law
        paper = (
            f"scale {near(law.kernel.scale)}, rate {near(law.rate)}, acceptance "
            f"{near(advice.paper.acceptance)}: its formula states delta "
            f"{near(advice.paper.delta)}, the exact delta is {up(advice.paper_delta)}"
        )
    rows: list[Line] = [
        (
            "plain noise",
            f"scale {near(advice.plain.law.kernel.scale)}, acceptance "
            f"{down(advice.plain.acceptance)}",
        ),
        ("paper's choice", paper),
    ]
    if advice.ceiling is not None:
        rows.append(
            ("ceiling", f"{up(advice.ceiling.upper)}  (no symmetric unimodal noise accepts more)")
        )
    return [*rows, ("verdict", advice.verdict)]
