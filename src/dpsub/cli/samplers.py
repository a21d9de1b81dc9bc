"""The sampler on the command line: its name, and the sizes, rate or stages that it needs."""

from __future__ import annotations

import dataclasses
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpsub.cli.parsing import Parser, number, whole
from dpsub.errors import ArgumentError, UnsupportedError

if TYPE_CHECKING:
    from dpsub.sampling import Family, Sampler

_OTHER_WORDS = {"m": ["--batch-size"], "rate": ["--sample-rate"]}
_PURPOSES = {"n": "number of records", "rate": "probability of each record", "stages": "as wor:500,wr:400"}

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
    """Add the sampler, and the sizes that any sampler needs."""
    from dpsub.sampling import REGISTRY, names_of_sizes

    several = [name for name in REGISTRY.names() if name not in names_of_sizes()]
    names = ", ".join([*names_of_sizes(), *several])
    parser.add_argument("sampler", type=sampler_name, metavar="SAMPLER", help=names)
    sizes: dict[str, dict[str, None]] = {"n": {_PURPOSES["n"]: None}}
    for name in names_of_sizes():
        for size, purpose in REGISTRY.get(name).sizes.items():
            sizes.setdefault(size, {})[purpose] = None
    for size, purposes in sizes.items():
        also = _OTHER_WORDS.get(size, [])
        parser.add_argument(f"--{size}", *also, type=whole, metavar=size.upper(), help=", or ".join(purposes))
    parser.add_argument("--rate", "--sample-rate", type=number, metavar="Q", help=f"{_PURPOSES['rate']} (poisson)")
    parser.add_argument("--stages", metavar="KIND:SIZE,...", help="of multistage: wor:500,wr:400 or wr:500,poisson:0.1")
    parser.set_defaults(sampler_options=[*sizes, "rate", "stages"])


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


def sampler_of(arguments: Namespace) -> Sampler:
    """The sampler that the options describe.

    Raises
    ------
    ArgumentError
        If an option is missing, or one does not apply.
    """
    from dpsub.sampling import REGISTRY, Multistage

    kind = REGISTRY.get(arguments.sampler)
    options = _options(kind)
    _refuse_others(arguments, kind, options)
    if "stages" in options:
        _require(arguments, options)
        chain = Multistage.of_text(arguments.stages)
        chain.slots(arguments.n)  # they must fit n
        return chain
    if "rate" in options:
        if (arguments.rate is None) == (arguments.m is None):
            got = "neither" if arguments.rate is None else "both"
            raise ArgumentError(
                f"{kind.name} needs either --rate, or --n and --m for the rate m / n, got {got}; give one"
            )
        if arguments.rate is not None:
            return _remarked(arguments, kind(arguments.rate))  # type: ignore[call-arg]
        options = {name: what for name, what in options.items() if name != "rate"}
    _require(arguments, options)
    return _remarked(arguments, kind.of_sizes(arguments.n, **_sizes(arguments, kind)))


def family_of(arguments: Namespace) -> Family:
    """The samplers that remain when the size of the last stage, or the rate, is left open.

    Raises
    ------
    ArgumentError
        As `sampler_of`, or if the size that is asked for is given.
    """
    from dpsub.sampling import REGISTRY, Multistage

    kind = REGISTRY.get(arguments.sampler)
    options = _options(kind)
    open_ones = [*list(kind.sizes)[-1:], *(["rate"] if "rate" in options else [])]
    for name in open_ones:
        if getattr(arguments, name) is not None:
            raise ArgumentError(f"--{name} is what is asked for; drop it")
        del options[name]
    _refuse_others(arguments, kind, options)
    if "rate" not in open_ones:
        _require(arguments, options)
    if "stages" in options:
        return Multistage.last_open(Multistage.of_text(arguments.stages).chain, arguments.n)
    return kind.family(arguments.n, **_sizes(arguments, kind))


def described(sampler: Sampler, n: int | None) -> str:
    """The sampler with its sizes, as a reader expects it: WOR(n = 100, m = 10)."""
    parts = [] if n is None else [f"n = {n}"]
    for field in dataclasses.fields(sampler):  # type: ignore[arg-type]
        if field.name == "n" and n is not None:
            continue
        value = getattr(sampler, field.name)
        parts.append(_chain(value) if field.name == "chain" else f"{field.name} = {_exact(value)}")
    return f"{sampler.label}({', '.join(parts)})"


def _chain(stages: Sequence[Any]) -> str:
    sizes = [stage.rate if stage.kind == "poisson" else stage.size for stage in stages]
    return ", ".join(f"{stage.kind}:{_exact(size)}" for stage, size in zip(stages, sizes, strict=True))


def _exact(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def _options(kind: type[Sampler]) -> dict[str, str]:
    """What the sampler takes, and what for."""
    if not kind.sizes:
        return {name: _PURPOSES[name] for name in ("n", "stages")}
    fields = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    rate = {"rate": _PURPOSES["rate"]} if fields == ["rate"] else {}
    return {"n": _PURPOSES["n"], **kind.sizes, **rate}


def _sizes(arguments: Namespace, kind: type[Sampler]) -> dict[str, int | None]:
    return {name: getattr(arguments, name) for name in kind.sizes}


def _remarked(arguments: Namespace, sampler: Sampler) -> Sampler:
    """Say so where every sample is the whole of the records."""
    if getattr(sampler, "rate", None) == 1:
        arguments.remarks.append("rate 1 takes every record: no subsampling, nothing amplifies; is it 1 %, 0.01?")
    elif sampler.name == "wor" and arguments.m == arguments.n:
        arguments.remarks.append("m = n takes every record: no subsampling, nothing amplifies")
    return sampler


def _refuse_others(arguments: Namespace, kind: type[Sampler], options: dict[str, str]) -> None:
    for name in arguments.sampler_options:
        if name not in options and getattr(arguments, name) is not None:
            takes = " and ".join(f"--{option} ({purpose})" for option, purpose in options.items())
            raise ArgumentError(f"--{name} does not apply to {kind.name}, which takes {takes}; drop --{name}")


def _require(arguments: Namespace, options: dict[str, str]) -> None:
    missing = [name for name in options if getattr(arguments, name) is None]
    if missing:
        needed = " and ".join(f"--{name}" for name in options)
        lacking = " and no ".join(f"--{name} ({options[name]})" for name in missing)
        raise ArgumentError(f"{arguments.sampler} needs {needed}, got no {lacking}")
