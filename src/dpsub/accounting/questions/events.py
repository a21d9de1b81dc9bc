"""Conversion of dp-accounting's events to releases: which events are covered, and their units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dpsub import checks
from dpsub.accounting.engine.pairs import MIN_SCALE
from dpsub.accounting.questions.ledger import Ledger
from dpsub.accounting.release import MECHANISMS, MOST_STEPS, Release
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.sampling import Poisson, Schedule, TruncatedPoisson, Wor, Wr
from dpsub.sampling.base import Sampler

UNITS = (
    "the noise multiplier of an event is read as dp-accounting documents it, noise "
    "scale over the norm bound C of one record; replacing a record moves the sum by up "
    "to 2 C, so double a multiplier that was meant relative to 2 C"
)
_NOISE = {f"{name.capitalize()}DpEvent": name for name in MECHANISMS}
_DEEPEST = 100
_ATTRIBUTES = {
    "NoOpDpEvent": (),
    **dict.fromkeys(_NOISE, ("noise_multiplier",)),
    "PoissonSampledDpEvent": ("sampling_probability", "event"),
    "SampledWithoutReplacementDpEvent": ("source_dataset_size", "sample_size", "event"),
    "SampledWithReplacementDpEvent": ("source_dataset_size", "sample_size", "event"),
    "TruncatedSubsampledGaussianDpEvent": (
        "dataset_size",
        "sampling_probability",
        "truncated_batch_size",
        "noise_multiplier",
    ),
    "SelfComposedDpEvent": ("event", "count"),
    "ComposedDpEvent": ("events",),
}
"""Attributes of events in dp-accounting's order: JSON of a named tuple is a list, without their
names."""


class LittleNoiseError(ArgumentError):
    """The noise of an event is 0, or so small that nothing can be proved."""


def ledger_of(event: object) -> Ledger:
    """Return the releases that an event of dp-accounting describes.

    Parameters
    ----------
    event : DpEvent, its named tuple, or a mapping
        Gaussian and Laplace noise on the sum of all records, of a Poisson sample, or of one of
        fixed size, with or without replacement; truncated Poisson samples; compositions of these,
        nested at will; a sample of a composition of equal Gaussian events, which is used as often.
        A mapping, as JSON has it, has the key `class_name` and one for each attribute; JSON of a
        named tuple is a list of its module, its class and its attributes. dp-accounting itself is
        not needed.

    Raises
    ------
    ArgumentError
        If the event releases nothing, or an attribute is missing or out of range.
    UnsupportedError
        If a class of events has no meaning here, or is none; the message names it.

    Notes
    -----
    A noise multiplier is the noise scale over the norm bound C of one record, as dp-accounting
    documents it, and as `account` takes it. Its RDP accountant takes it as the noise over the
    sensitivity where a record is replaced (google/differential-privacy, issue 378).

    Examples
    --------
    >>> import dpsub
    >>> gaussian = {"class_name": "GaussianDpEvent", "noise_multiplier": 1.0}
    >>> sampled = {
    ...     "class_name": "PoissonSampledDpEvent",
    ...     "sampling_probability": 0.01,
    ...     "event": gaussian,
    ... }
    >>> composed = {"class_name": "SelfComposedDpEvent", "event": sampled, "count": 100}
    >>> ledger = dpsub.ledger_of(composed)
    >>> [(release.sampler, release.steps) for release in ledger]
    [(Poisson(rate=0.01), 100)]
    >>> dpsub.check(ledger, delta=1e-5, claimed_epsilon=0.7).verdict
    'refuted'
    """
    steps = steps_of(event)
    if not steps:
        raise ArgumentError(
            f"an event must contain a release, got {type(event).__name__} without one"
        )
    return Ledger(replace(kind, steps=total) for kind, total in steps.items())


def steps_of(event: object) -> dict[Release, int]:
    """Return releases of one sample, and how many of each an event makes; errors as in `ledger_of`,
    but of an event without a release."""
    # equal releases are one entry, wherever they stand: an accountant composes them at once
    steps: dict[Release, int] = {}
    for release in _releases(event, times=1, depth=0):
        kind = replace(release, steps=release.releases_per_sample)
        steps[kind] = steps.get(kind, 0) + release.steps
    return steps


def _releases(event: object, times: int, depth: int) -> Iterator[Release]:
    """Yield what `times` such events release."""
    name, fields = _read(event)
    if depth > _DEEPEST:
        raise ArgumentError(
            f"events must be nested at most {_DEEPEST} deep, got more; flatten them"
        )

    def value(field: str) -> Any:
        if field not in fields:
            raise ArgumentError(
                f"{name} needs {field}, got {', '.join(fields) or 'nothing'}; add it"
            )
        return fields[field]

    sampler: Sampler | Schedule
    if name == "NoOpDpEvent":
        return
    if name == "SelfComposedDpEvent":
        count = checks.integer("count", value("count"), at_least=0, at_most=MOST_STEPS)
        if count:
            yield from _releases(value("event"), times * count, depth + 1)
    elif name == "ComposedDpEvent":
        events = value("events")
        if not isinstance(events, list | tuple):
            raise ArgumentError(
                f"events of ComposedDpEvent must be a list, got {type(events).__name__}"
            )
        for part in events:
            yield from _releases(part, times, depth + 1)
    elif name in _NOISE:
        # noise on the sum of all records: each is in the sample for sure
        yield Release(Poisson(1.0), None, _noise(value("noise_multiplier")), times, _NOISE[name])
    elif name == "TruncatedSubsampledGaussianDpEvent":
        sampler = TruncatedPoisson(value("sampling_probability"), value("truncated_batch_size"))
        yield Release(sampler, value("dataset_size"), _noise(value("noise_multiplier")), times)
    elif name == "PoissonSampledDpEvent":
        yield _sampled(name, Poisson(value("sampling_probability")), None, value("event"), times)
    elif name in ("SampledWithoutReplacementDpEvent", "SampledWithReplacementDpEvent"):
        kind = Wr if name == "SampledWithReplacementDpEvent" else Wor
        yield _sampled(
            name, kind(value("sample_size")), value("source_dataset_size"), value("event"), times
        )
    else:
        raise UnsupportedError(
            f"events of class {name} are not supported; use Gaussian or Laplace events, "
            "one of them on a sample, and compositions of these"
        )


def _sampled(name: str, sampler: Sampler, n: int | None, event: object, times: int) -> Release:
    """Return releases from samples; one may be used several times."""
    (inner, fields), each = _read(event), 1
    if inner == "SelfComposedDpEvent" and {"event", "count"} <= set(fields):
        each = checks.integer("count", fields["count"], at_least=1, at_most=MOST_STEPS)
        inner, fields = _read(fields["event"])
    if inner not in _NOISE:
        raise UnsupportedError(
            f"{name} of {inner} is not supported: each sample must serve one GaussianDpEvent or "
            "LaplaceDpEvent, or a number of equal ones, because several releases from one sample "
            "are not independent"
        )
    if "noise_multiplier" not in fields:
        raise ArgumentError(
            f"{inner} needs noise_multiplier, got {', '.join(fields) or 'nothing'}; add it"
        )
    noise = _noise(fields["noise_multiplier"])
    return Release(sampler, n, noise, times * each, _NOISE[inner], releases_per_sample=each)


def _noise(value: Any) -> float:
    noise = checks.real("noise_multiplier", value, at_least=0)
    if noise < MIN_SCALE:
        raise LittleNoiseError(
            f"noise_multiplier must be at least {MIN_SCALE:g}, got {noise:g}; take more noise"
        )
    return noise


def _read(event: object) -> tuple[str, Mapping[str, Any]]:
    """Return the class of an event, and its attributes."""
    if isinstance(event, Mapping):
        if not isinstance(name := event.get("class_name"), str):
            raise ArgumentError(
                "an event needs its class_name, got "
                f"{', '.join(map(str, event)) or 'nothing'}; add it"
            )
        return name, {
            key: value for key, value in event.items() if key not in ("class_name", "module_name")
        }
    if type(event) in (list, tuple):
        return _read_list(event)  # type: ignore[arg-type]
    kind = type(event).__name__
    if hasattr(event, "class_name") and isinstance(event, tuple):
        return str(event.class_name), event._asdict()  # type: ignore[attr-defined]
    if not kind.endswith("DpEvent"):
        raise UnsupportedError(
            f"an event must be a DpEvent of dp-accounting, or JSON of one, got {kind}"
        )
    # what dp-accounting's classes are made with, which need not be installed
    fields = getattr(type(event), "__attrs_attrs__", ())
    return kind, {field.name: getattr(event, field.name) for field in fields}


def _read_list(event: Sequence[Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the class and the attributes of a named tuple, from its values in JSON."""
    if len(event) < 2 or not (isinstance(event[1], str) and event[1].endswith("DpEvent")):
        raise ArgumentError(
            "an event that is a list must hold its module, its class and its attributes, as JSON "
            f"of a named tuple, got {len(event)} values; take the JSON of to_named_tuple()"
        )
    name, values = event[1], event[2:]
    if name not in _ATTRIBUTES:
        return name, {}  # refused by its name
    if len(values) != len(_ATTRIBUTES[name]):
        raise ArgumentError(
            f"{name} needs {', '.join(_ATTRIBUTES[name]) or 'no attribute'}, got {len(values)} "
            "values; name the attributes in a mapping with class_name"
        )
    return name, dict(zip(_ATTRIBUTES[name], values, strict=True))
