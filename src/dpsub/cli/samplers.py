"""Options of the command line for the sampler: its name, and the sizes, rate or stages it needs."""

from __future__ import annotations

import dataclasses
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from dataclasses import MISSING
from typing import Any

from dpsub import checks
from dpsub.cli import own_files
from dpsub.cli.parsing import Parser, number, whole_number, whole_numbers
from dpsub.errors import ArgumentError
from dpsub.sampling import (
    REGISTRY,
    SCHEDULES,
    Family,
    Multistage,
    Sampler,
    Schedule,
    kind_of,
    names_of_sizes,
)

# Names of these sizes in DP-SGD libraries.
_OTHER_WORDS = {"m": ["--batch-size"], "rate": ["--sample-rate"]}
_PURPOSES = {
    "n": "number of records",
    "rate": "inclusion probability of each record",
    "stages": "such as wor:500,wr:400",
}

# Of values that are no sizes; batch sizes are compared.
_TYPES = {"m": whole_numbers, "largest_weight": number}

# Options without a value.
_FLAGS = {"drop_last", "warm_start"}
_OF_LOOP = ", or describe the training loop to dpsub loader"

# One option serves several samplers: its help says what is common to them.
_HELP = {"m": "batch size (expected, for Poisson)"}

# Suggested, not accepted: "uniform" or "shuffled" mean different samplers to different readers,
# with different guarantees.
_LOOPS = ("sgd", "dpsgd", "dp_sgd", "opacus", "dataloader", "loader")
_OTHER_NAMES = {
    "bernoulli": "poisson",
    "without_replacement": "wor",
    "uniform": "wor",
    "srswor": "wor",
    "fixed_size": "wor",
    "with_replacement": "wr",
    "bootstrap": "wr",
    "srswr": "wr",
    **dict.fromkeys(("weighted", "weighted_random", "weighted_sampler"), "weighted_wr"),
    "truncated": "truncated_poisson",
    **dict.fromkeys(("shuffled", "shuffling", "reshuffling", "random_reshuffling"), "shuffle"),
    **dict.fromkeys(("balls_and_bins", "balls_in_bins", "allocation"), "random_allocation"),
    **dict.fromkeys(("b_min_sep", "min_sep", "bminsep"), "min_separation"),
    **dict.fromkeys(("cyclic", "sequential", "in_order", "full_batch"), "deterministic"),
}


def add_sampler(parser: Parser, *, required: bool = True) -> None:
    """Add the sampler or schedule, and the sizes that any of them needs."""
    names = [
        *names_of_sizes(),
        *(name for name in REGISTRY.names() if name not in names_of_sizes()),
    ]
    listed, count = ", ".join([*names, *SCHEDULES.names()]), None if required else "?"
    parser.add_argument("sampler", type=sampler_name, nargs=count, metavar="SAMPLER", help=listed)
    sizes: dict[str, dict[str, None]] = {"n": {_PURPOSES["n"]: None}}
    for name in names_of_sizes():
        # One option may serve several samplers; its help lists each purpose once.
        for size, purpose in REGISTRY.get(name).sizes.items():
            sizes.setdefault(size, {})[purpose] = None
    for field, served in _of_fields().items():
        sizes.setdefault(field, {}).update(dict.fromkeys(served))
    for size, purposes in sizes.items():
        if size in _FLAGS:
            # as other options: None where it is not given
            text = ", or ".join(purposes)
            parser.add_argument(
                _option(size), action="store_const", const=True, default=None, help=text
            )
            continue
        also = _OTHER_WORDS.get(size, [])
        parser.add_argument(
            _option(size),
            *also,
            type=_TYPES.get(size, whole_number),
            metavar=size.upper(),
            help=_HELP.get(size, ", or ".join(purposes)),
        )
    with_rates = ", ".join(
        name for name in (*names_of_sizes(), *SCHEDULES.names()) if _takes_rate(kind_of(name))
    )
    parser.add_argument(
        "--rate",
        "--sample-rate",
        type=number,
        metavar="Q",
        help=f"{_PURPOSES['rate']} ({with_rates})",
    )
    parser.add_argument(
        "--stages",
        metavar="KIND:SIZE,...",
        help="stages of multistage: wor:500,wr:400 or wr:500,poisson:0.1",
    )
    own_files.add_option(parser)
    parser.set_defaults(sampler_options=[*sizes, "rate", "stages"])


def _of_fields() -> dict[str, list[str]]:
    """Fields of samplers and schedules, with each purpose once and the ones that it serves."""
    serves: dict[str, dict[str, list[str]]] = {}
    kinds: list[type[Sampler] | type[Schedule]] = [*REGISTRY.members().values()]
    for kind in [*kinds, *SCHEDULES.members().values()]:
        for field, purpose in kind.options.items():
            if field != "rate":
                serves.setdefault(field, {}).setdefault(purpose, []).append(kind.name)
    return {
        size: [f"{purpose} ({', '.join(names)})" for purpose, names in purposes.items()]
        for size, purposes in serves.items()
    }


def sampler_name(name: str) -> str:
    """Return the name of a sampler or schedule, else raise an error that suggests the nearest."""
    practice = checks.plain_word(name)
    if practice in _OTHER_NAMES:
        raise ArgumentTypeError(
            f"unknown sampler {name!r}; did you mean {_OTHER_NAMES[practice]!r}?"
        )
    if practice in _LOOPS:
        raise ArgumentTypeError(
            f"unknown sampler {name!r}, which is a training; describe its loop to dpsub loader"
        )
    if practice in (*REGISTRY.names(), *SCHEDULES.names()):
        return practice
    try:
        return kind_of(name).name
    except ArgumentError as error:
        raise ArgumentTypeError(str(error)) from None


def sampler_of(arguments: Namespace) -> Sampler | Schedule:
    """The sampler or the schedule that the options describe."""
    kind = kind_of(arguments.sampler)
    options = _options(arguments, kind)
    if "stages" in options:
        _require(arguments, options)
        chain = Multistage.of_text(arguments.stages)
        # An error here names a stage that does not fit n.
        chain.slots(arguments.n)
        return chain
    # Two ways to give one number could contradict each other.
    if "rate" in options and (arguments.rate is None) == (arguments.m is None):
        got = "neither" if arguments.rate is None else "both"
        raise ArgumentError(
            f"{kind.name} needs either --rate, or --n and --m for the rate m / n, "
            f"got {got}; give one"
        )
    sampler: Sampler | Schedule
    if _is_of_batch_size(arguments, kind):
        sampler = _of_batch_size(arguments, kind)
    elif arguments.rate is not None or (_has_fields(kind) and "rate" not in options):
        fields = dataclasses.fields(kind)  # type: ignore[arg-type]
        _require(
            arguments,
            {field.name: options[field.name] for field in fields if field.default is MISSING},
        )
        values = {field.name: getattr(arguments, field.name) for field in fields}
        sampler = kind(**{name: value for name, value in values.items() if value is not None})
    else:
        options.pop("rate", None)
        _require(arguments, {name: options[name] for name in options if name not in _FLAGS})
        sampler = kind.of_sizes(arguments.n, **_sizes(arguments, kind))
    if getattr(sampler, "rate", None) == 1:
        arguments.remarks.append(
            "rate 1 takes every record, so there is no subsampling and no "
            "amplification; was 1 %, 0.01, meant?"
        )
    # Allowed, since a full batch is a release like any other, but seldom meant.
    elif sampler.name == "wor" and arguments.m == arguments.n:
        arguments.remarks.append(
            "m = n takes every record, so there is no subsampling and no amplification"
        )
    return sampler


def _is_of_batch_size(arguments: Namespace, kind: type[Sampler] | type[Schedule]) -> bool:
    """Whether a batch size is given for a schedule that has other fields, such as the steps of a
    random allocation."""
    return (
        issubclass(kind, Schedule)
        and not {"m", "rate"} & {*kind.options}
        and "m" in kind.sizes
        and arguments.m is not None
    )


def _of_batch_size(arguments: Namespace, kind: Any) -> Schedule:
    """The schedule of n records in batches of (expected) size m."""
    _require(arguments, {name: kind.sizes.get(name, _PURPOSES["n"]) for name in ("n", *kind.sizes)})
    derived: Schedule = kind.of_sizes(arguments.n, **_sizes(arguments, kind))
    for field in dataclasses.fields(kind):
        value = getattr(arguments, field.name)
        if value is None:
            continue
        # Fields without a default follow from the sizes.
        if field.default is MISSING:
            raise ArgumentError(
                f"{_option(field.name)} of {kind.name} follows from --n and --m, got both; drop one"
            )
        derived = dataclasses.replace(derived, **{field.name: value})  # type: ignore[type-var]
    return derived


def family_of(arguments: Namespace) -> Family:
    """The family of samplers whose last size, or rate, is to be solved for."""
    kind = kind_of(arguments.sampler)
    if issubclass(kind, Schedule) or kind.options:
        raise ArgumentError(
            f"--solve size does not support {kind.name}; solve for noise, or compare sizes"
        )
    with_rate = _takes_rate(kind)
    unknowns = [*list(kind.sizes)[-1:], *(["rate"] if with_rate else [])]
    # The size solved for, or the rate in its place.
    for name in unknowns:
        if getattr(arguments, name) is not None:
            raise ArgumentError(f"--solve size returns {_option(name)} and cannot take it; drop it")
    options = _options(arguments, kind, unknowns)
    if not with_rate:
        _require(arguments, options)
    if "stages" in options:
        return Multistage.last_open(Multistage.of_text(arguments.stages).chain, arguments.n)
    return kind.family(arguments.n, **_sizes(arguments, kind))


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _has_fields(kind: type[Sampler] | type[Schedule]) -> bool:
    """Whether it is made of its fields, not of sizes."""
    return issubclass(kind, Schedule) or bool(kind.options)


def _takes_rate(kind: type[Sampler] | type[Schedule]) -> bool:
    return "rate" in (field.name for field in dataclasses.fields(kind))  # type: ignore[arg-type]


def _options(
    arguments: Namespace, kind: type[Sampler] | type[Schedule], without: Sequence[str] = ()
) -> dict[str, str]:
    """The sampler's options with their purposes; ArgumentError if any other option is given."""
    purposes = _PURPOSES | dict(kind.sizes)
    names = ["n", *(kind.sizes or ["stages"]), *(["rate"] if _takes_rate(kind) else [])]
    if _has_fields(kind):
        purposes |= kind.options
        # Both follow from the batch size: a rate, and the number of steps.
        from_size = "m" in kind.sizes and "m" not in kind.options
        names = ["n", *kind.options, *(["m"] if from_size else [])]
        purposes["m"] = kind.options.get("m", kind.sizes.get("m", ""))
    options = {name: purposes[name] for name in names if name not in without}
    for name in arguments.sampler_options:
        # An option that the sampler ignores would make a reader believe that it counts.
        if name not in options and getattr(arguments, name) is not None:
            takes = " and ".join(
                f"{_option(option)} ({purpose})" for option, purpose in options.items()
            )
            raise ArgumentError(
                f"{_option(name)} does not apply to {kind.name}, which takes {takes}; drop it"
                f"{_OF_LOOP if name in _FLAGS else ''}"
            )
    return options


def _sizes(arguments: Namespace, kind: type[Sampler] | type[Schedule]) -> dict[str, int | None]:
    return {name: getattr(arguments, name) for name in kind.sizes}


def _require(arguments: Namespace, options: dict[str, str]) -> None:
    missing = [name for name in options if getattr(arguments, name) is None]
    if missing:
        needed = " and ".join(_option(name) for name in options)
        lacking = " and no ".join(f"{_option(name)} ({options[name]})" for name in missing)
        raise ArgumentError(f"{arguments.sampler} needs {needed}, got no {lacking}")
