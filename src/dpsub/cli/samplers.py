"""The sampler on the command line: its name, and the sizes, rate or stages that it needs."""

from __future__ import annotations

import dataclasses
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dpsub.cli.parsing import Parser, nearest, whole
from dpsub.cli.parsing import number as real_number
from dpsub.errors import ArgumentError, UnsupportedError

if TYPE_CHECKING:
    from dpsub.sampling import Sampler
    from dpsub.sampling.base import Stage

STAGES = ("wor", "wr", "poisson")
_ASKED = "is what is asked for"
_OPTIONS = ("m", "b", "rate", "stages")
_PURPOSES = {
    "n": "the number of records",
    "m": "the size of the sample",
    "b": "the size of the first of two stages",
    "rate": "the probability of each record",
    "stages": "the stages, such as wor:500,wr:400",
}

_ONCE = (
    "draw each batch afresh, as wor and poisson do, or, if no record is in two batches of an epoch, count the epoch as "
    "one release from all records: wor --n N --m N --steps EPOCHS"
)
_SHUFFLED = f"a batch depends on the others of its epoch, which no theorem here covers; {_ONCE}"
_IN_ORDER = f"who is in a batch is no secret, so that nothing amplifies; {_ONCE}"
PRACTICES = dict.fromkeys(
    ("shuffle", "shuffled", "shuffling", "reshuffling", "random_reshuffling", "random_allocation", "balls_and_bins"),
    _SHUFFLED,
) | dict.fromkeys(("cyclic", "sequential", "in_order"), _IN_ORDER)
"""What people do that is none of the samplers, and why, and the way out."""

_OTHER_NAMES = {
    "bernoulli": "poisson", "without_replacement": "wor", "uniform": "wor", "srswor": "wor", "fixed_size": "wor",
    "with_replacement": "wr", "bootstrap": "wr", "srswr": "wr",
}  # fmt: skip


def add_sampler(parser: Parser) -> None:
    """Add the sampler and its options."""
    names = "poisson, wor, wr, must_ow, must_wo, must_ww, must_oo, multistage"
    parser.add_argument("sampler", type=sampler_name, metavar="SAMPLER", help=names)
    parser.add_argument("--n", type=whole, metavar="N", help=_PURPOSES["n"])
    size = f"{_PURPOSES['m']} (poisson: expected)"
    parser.add_argument("--m", "--batch-size", type=whole, metavar="M", help=size)
    parser.add_argument("--b", type=whole, metavar="B", help=_PURPOSES["b"])
    parser.add_argument("--rate", "--sample-rate", type=real_number, metavar="Q", help=f"{_PURPOSES['rate']} (poisson)")
    parser.add_argument("--stages", metavar="KIND:SIZE,...", help="of multistage: wor:500,wr:400 or wr:500,poisson:0.1")


def sampler_of(arguments: Namespace) -> Sampler:
    """The sampler that the options describe.

    Raises
    ------
    ArgumentError
        If an option is missing, or one does not apply.
    """
    name = arguments.sampler
    if name == "poisson":
        return _poisson(arguments)
    if name == "multistage":
        return _multistage(arguments, None)
    _needs(arguments, name, _fields(name))
    return _of_sizes(arguments, arguments.m)
@dataclasses.dataclass(frozen=True)
class Family:
    """Samplers that differ in one size or rate only.

    Attributes
    ----------
    make : callable
        From the size or rate to the sampler.
    most : float
        Largest size or rate.
    solved : {"size", "rate"}
    """

    make: Callable[[float], Sampler]
    most: float
    solved: str


def family_of(arguments: Namespace) -> Family:
    """The samplers that remain when the size of the last stage, or the rate, is left open.

    Raises
    ------
    ArgumentError
        As `sampler_of`, or if the size that is asked for is given.
    """
    from dpsub.sampling import Poisson

    name = arguments.sampler
    if name == "poisson":
        _refuse(arguments, ("m", "rate"), _ASKED)
        _refuse(arguments, ("b", "stages"), "does not apply to poisson")
        return Family(Poisson, 1.0, "rate")
    if name == "multistage":
        _needs(arguments, name, ("stages",))
        stages = _stages(arguments.stages)
        kind, before = STAGES[_position(stages[-1])], stages[:-1]
        if kind == "poisson":
            return Family(lambda rate: _multistage(arguments, rate), 1.0, "rate")
        slots = getattr(before[-1], "size", arguments.n) if before else arguments.n
        most = slots if kind == "wor" else max(arguments.n, slots)
        return Family(lambda size: _multistage(arguments, size), most, "size")
    needed = tuple(field for field in _fields(name) if field != "m")
    _refuse(arguments, ("m",), _ASKED)
    _needs(arguments, name, needed)
    most = min(arguments.n, arguments.b) if name in ("must_wo", "must_oo") else arguments.n
    return Family(lambda size: _of_sizes(arguments, int(size)), most, "size")


def described(sampler: Sampler, n: int | None) -> str:
    """The sampler with its sizes, as a reader expects it: WOR(n = 100, m = 10)."""
    parts = [] if n is None else [f"n = {n}"]
    for field in dataclasses.fields(sampler):  # type: ignore[arg-type]
        value = getattr(sampler, field.name)
        parts.append(_chain_text(value) if field.name == "chain" else f"{field.name} = {_exact(value)}")
    return f"{sampler.label}({', '.join(parts)})"


def sampler_name(name: str) -> str:
    """Return the name if it is that of a sampler, else say what comes nearest.

    Raises
    ------
    UnsupportedError
        If it is a known practice, but none of the samplers.
    """
    from dpsub.sampling import REGISTRY

    practice = name.lower().replace("-", "_")
    if practice in PRACTICES:
        raise UnsupportedError(f"{name!r} is none of the samplers: {PRACTICES[practice]}")
    if practice in _OTHER_NAMES:
        raise ArgumentTypeError(f"unknown sampler {name!r}; did you mean {_OTHER_NAMES[practice]!r}?")
    try:
        REGISTRY.get(name)
    except ArgumentError as error:
        raise ArgumentTypeError(str(error)) from None
    return name


def _fields(name: str) -> tuple[str, ...]:
    from dpsub.sampling import REGISTRY

    return tuple(field.name for field in dataclasses.fields(REGISTRY.get(name)))  # type: ignore[arg-type]


def _of_sizes(arguments: Namespace, m: int) -> Sampler:
    from dpsub.sampling import of_sizes

    return of_sizes(arguments.sampler, n=arguments.n, m=m, b=arguments.b)


def _poisson(arguments: Namespace) -> Sampler:
    from dpsub.sampling import Poisson

    _refuse(arguments, ("b", "stages"), "does not apply to poisson")
    if (arguments.rate is None) == (arguments.m is None):
        got = "neither" if arguments.rate is None else "both"
        raise ArgumentError(f"poisson needs either --rate, or --n and --m for the rate m / n, got {got}; give one")
    if arguments.rate is not None:
        return Poisson(arguments.rate)
    _require(arguments, "poisson with --m", ("n",))
    return _of_sizes(arguments, arguments.m)


def _multistage(arguments: Namespace, last: float | None) -> Sampler:
    """The chain; with the size or rate of its last stage replaced where `last` is given."""
    from dpsub.sampling import Multistage

    _needs(arguments, "multistage", ("stages",))
    stages = _stages(arguments.stages)
    if last is not None:
        kind = STAGES[_position(stages[-1])]
        stages[-1] = _stage(kind, str(last) if kind == "poisson" else str(int(last)))
    sampler = Multistage(stages)
    sampler.slots(arguments.n)
    return sampler


def _stages(text: str) -> list[Stage]:
    stages = []
    for part in text.split(","):
        kind, colon, size = part.strip().partition(":")
        if not colon or not size.strip():
            raise ArgumentError(f"a stage must be KIND:SIZE, got {part.strip()!r}; write --stages wor:500,wr:400")
        if kind not in STAGES:
            raise ArgumentError(f"unknown kind of stage {kind!r}; {nearest(kind, list(STAGES))}")
        stages.append(_stage(kind, size.strip()))
    return stages


def _stage(kind: str, text: str) -> Stage:
    from dpsub.sampling.base import PoissonStage, WithoutReplacement, WithReplacement

    try:
        if kind == "poisson":
            return PoissonStage(real_number(text))
        return WithoutReplacement(whole(text)) if kind == "wor" else WithReplacement(whole(text))
    except ArgumentTypeError as error:
        what = "rate" if kind == "poisson" else "size"
        raise ArgumentError(f"the {what} of stage {kind}:{text} {error}") from None


def _position(stage: Stage) -> int:
    from dpsub.sampling.base import PoissonStage, WithoutReplacement, WithReplacement

    kinds = (WithoutReplacement, WithReplacement, PoissonStage)
    return next(i for i, kind in enumerate(kinds) if isinstance(stage, kind))


def _chain_text(stages: tuple[Stage, ...]) -> str:
    sizes = [getattr(stage, "rate" if STAGES[_position(stage)] == "poisson" else "size") for stage in stages]
    return ", ".join(f"{STAGES[_position(stage)]}:{_exact(size)}" for stage, size in zip(stages, sizes, strict=True))


def _exact(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def _needs(arguments: Namespace, name: str, fields: Sequence[str]) -> None:
    """Ask for n and `fields`, and for nothing else."""
    takes = " and ".join(f"--{field}, {_PURPOSES[field]}" for field in ("n", *fields))
    others = [option for option in _OPTIONS if option not in fields]
    _refuse(arguments, others, f"does not apply to {name}, which takes {takes}")
    _require(arguments, name, ("n", *fields))


def _require(arguments: Namespace, name: str, fields: Sequence[str]) -> None:
    missing = [field for field in fields if getattr(arguments, field) is None]
    if missing:
        needed = " and ".join(f"--{field}" for field in fields)
        lacking = " and no ".join(f"--{field} ({_PURPOSES[field]})" for field in missing)
        raise ArgumentError(f"{name} needs {needed}, got no {lacking}")


def _refuse(arguments: Namespace, fields: Sequence[str], why: str) -> None:
    given = [field for field in fields if getattr(arguments, field) is not None]
    if given:
        raise ArgumentError(f"--{given[0]} {why}; drop --{given[0]}")
