"""The sampler on the command line: its name, and the sizes, rate or stages that it needs."""

from __future__ import annotations

import dataclasses
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence

from dpsub.cli.parsing import Parser, number, whole
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.sampling import REGISTRY, Family, Multistage, Sampler, names_of_sizes

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
    names = [*names_of_sizes(), *(name for name in REGISTRY.names() if name not in names_of_sizes())]
    parser.add_argument("sampler", type=sampler_name, metavar="SAMPLER", help=", ".join(names))
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
    """Return the name if it is that of a sampler, else say what comes nearest; UnsupportedError for other practices."""
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
    """The sampler that the options describe."""
    kind = REGISTRY.get(arguments.sampler)
    options = _options(arguments, kind)
    if "stages" in options:
        _require(arguments, options)
        chain = Multistage.of_text(arguments.stages)
        chain.slots(arguments.n)  # they must fit n
        return chain
    if "rate" in options and (arguments.rate is None) == (arguments.m is None):
        got = "neither" if arguments.rate is None else "both"
        raise ArgumentError(f"{kind.name} needs either --rate, or --n and --m for the rate m / n, got {got}; give one")
    sampler: Sampler
    if arguments.rate is not None:
        sampler = kind(arguments.rate)  # type: ignore[call-arg]
    else:
        options.pop("rate", None)
        _require(arguments, options)
        sampler = kind.of_sizes(arguments.n, **_sizes(arguments, kind))
    if getattr(sampler, "rate", None) == 1:
        arguments.remarks.append("rate 1 takes every record: no subsampling, nothing amplifies; is it 1 %, 0.01?")
    elif sampler.name == "wor" and arguments.m == arguments.n:
        arguments.remarks.append("m = n takes every record: no subsampling, nothing amplifies")
    return sampler


def family_of(arguments: Namespace) -> Family:
    """The samplers that remain when the size of the last stage, or the rate, is left open."""
    kind = REGISTRY.get(arguments.sampler)
    with_rate = _takes_rate(kind)
    open_ones = [*list(kind.sizes)[-1:], *(["rate"] if with_rate else [])]
    for name in open_ones:
        if getattr(arguments, name) is not None:
            raise ArgumentError(f"--{name} is what is asked for; drop it")
    options = _options(arguments, kind, open_ones)
    if not with_rate:
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
        if field.name == "chain":
            parts += [f"{s.kind}:{_exact(s.rate if s.kind == 'poisson' else s.size)}" for s in value]
        else:
            parts.append(f"{field.name} = {_exact(value)}")
    return f"{sampler.label}({', '.join(parts)})"


def _exact(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def _takes_rate(kind: type[Sampler]) -> bool:
    return [field.name for field in dataclasses.fields(kind)] == ["rate"]  # type: ignore[arg-type]


def _options(arguments: Namespace, kind: type[Sampler], without: Sequence[str] = ()) -> dict[str, str]:
    """What the sampler takes, and what for; no other option may be given."""
    names = ["n", *(kind.sizes or ["stages"]), *(["rate"] if _takes_rate(kind) else [])]
    options = {name: kind.sizes.get(name, _PURPOSES.get(name, "")) for name in names if name not in without}
    for name in arguments.sampler_options:
        if name not in options and getattr(arguments, name) is not None:
            takes = " and ".join(f"--{option} ({purpose})" for option, purpose in options.items())
            raise ArgumentError(f"--{name} does not apply to {kind.name}, which takes {takes}; drop --{name}")
    return options


def _sizes(arguments: Namespace, kind: type[Sampler]) -> dict[str, int | None]:
    return {name: getattr(arguments, name) for name in kind.sizes}


def _require(arguments: Namespace, options: dict[str, str]) -> None:
    missing = [name for name in options if getattr(arguments, name) is None]
    if missing:
        needed = " and ".join(f"--{name}" for name in options)
        lacking = " and no ".join(f"--{name} ({options[name]})" for name in missing)
        raise ArgumentError(f"{arguments.sampler} needs {needed}, got no {lacking}")
