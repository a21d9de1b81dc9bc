"""Settings: typed models, closed and with units, against which the content of YAML files is merged,
checked, and reduced to one form."""

from __future__ import annotations

import json
import math
import re
import types
import typing
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError, core_schema

from dpsub import checks, noise, sampling, streams
from dpsub.errors import ArgumentError, PlanError, UnsupportedError

T = TypeVar("T")

RENAMED = {"scheme": "sampler", "schemes": "samplers"}
"""Keys of earlier releases, refused with the new word."""


class Closed(BaseModel):
    """A closed group of settings, the published values as defaults.

    Text and truth values are no numbers; whole numbers are numbers; NaN and infinity are refused.
    `check` compares values with each other.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def check(self) -> None:
        """Raise ArgumentError, UnsupportedError or PlanError if the settings contradict each
        other."""

    @model_validator(mode="after")
    def _checked(self) -> Closed:
        try:
            self.check()
        # pydantic collects ValueErrors alone, of which ArgumentError is one.
        except (UnsupportedError, PlanError) as problem:
            raise ArgumentError(str(problem)) from None
        return self


def known(noun: str, names: typing.Callable[[], Iterable[str]]) -> AfterValidator:
    """Validator of a text that must be one of some names."""

    def check(value: str) -> str:
        if value not in names():
            raise PydanticCustomError(
                "unknown_name", "unknown name", {"noun": noun, "names": sorted(names())}
            )
        return value

    return AfterValidator(check)


def _not_repeated(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if any(value in values[:position] for position, value in enumerate(values)):
        raise PydanticCustomError("repeated", "repeated")
    return values


Several = Annotated[tuple[T, ...], Field(min_length=1, strict=False)]
"""A list of at least one value."""
Listed = Annotated[Several[T], AfterValidator(_not_repeated)]
"""A list of at least one value, each value once."""
AnyOf = Annotated[tuple[T, ...], Field(strict=False), AfterValidator(_not_repeated)]
"""A list, which may be empty, with each value once."""


class OneOrMore:
    """Annotation of a list that may be given as its only value."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        def listed(value: Any) -> Any:
            return value if isinstance(value, (list, tuple)) else (value,)

        return core_schema.no_info_before_validator_function(listed, handler(source))

    def __get_pydantic_json_schema__(
        self, inner: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        listed = handler(inner)
        return {"anyOf": [listed["items"], listed]}


Varied = Annotated[Listed[T], OneOrMore()]
"""One value, or a list of at least one, each value once."""

Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(gt=0, lt=1)]
Probability = Annotated[float, Field(ge=0, le=1)]

FrameSize = Annotated[
    int, Field(ge=2, le=1_000_000_000, description="Number of records of the frame.")
]
FirstStage = Annotated[Count, Field(description="Size of the first stage of multistage samplers.")]
SampleSize = Annotated[Count, Field(description="Size of a subset.")]
Sizes = Annotated[Listed[Count], Field(description="Sizes.")]
Epsilon = Annotated[Positive, Field(description="Base epsilon, in nats.")]
EpsilonAmplified = Annotated[Positive, Field(description="Target epsilon', in nats.")]
Epsilons = Annotated[Listed[NonNegative], Field(description="epsilon, in nats.")]
Delta = Annotated[Share, Field(description="Probability at which epsilon is given.")]
Norm = Annotated[Positive, Field(description="Norm C to which gradients are clipped.")]
NoiseMultiplier = Annotated[
    float,
    Field(ge=0.05, description="Scale of the noise on the sum over the norm bound of one record."),
]
Releases = Annotated[int, Field(ge=1, le=1_000_000_000, description="Number of composed releases.")]
Effort = Annotated[
    float, Field(gt=0, description="Work that one answer may take, as in `dpsub account --effort`.")
]
Iterations = Annotated[int, Field(ge=1, le=10_000_000, description="Steps T of DP-SGD.")]
LearningRate = Annotated[Positive, Field(description="Step size of DP-SGD.")]
Replicates = Annotated[int, Field(ge=1, le=10_000_000, description="Independent repetitions.")]
Parts = Annotated[
    int, Field(ge=1, le=10_000, description="Jobs among which the replicates are split.")
]
Rates = Annotated[Listed[Share], Field(description="Rates of Poisson sampling.")]
Seed = Annotated[
    int, Field(ge=0, le=2**63 - 1, description="The one root seed of all random streams.")
]
Name = Annotated[str, Field(min_length=1)]
FolderName = Annotated[Name, Field(pattern=r"^[^{}<>\x00-\x1f]*$")]
"""Braces and angle brackets would be wildcards of the workflow."""
SamplerName = Annotated[
    str, known("sampler", lambda: sampling.REGISTRY.names()), Field(description="Sampler.")
]
MechanismName = Annotated[
    str, known("mechanism", lambda: noise.REGISTRY.names()), Field(description="Mechanism.")
]
Samplers = Annotated[Listed[SamplerName], Field(description="Samplers.")]
Mechanisms = Annotated[Listed[MechanismName], Field(description="Mechanisms.")]
Variant = Literal["stated", "as_done", "consistent", "rigorous"]

WHERE_ONLY = ("parts", "variants")
"""Settings that only say how much of an experiment is computed, and where; its numbers do not
depend on them."""


class Group(Closed):
    """Settings that several experiments of a paper share, by inheritance: each stands once, in the
    paper's `settings`.

    The configuration may override it for all of them, under `shared`, the paper's key, and the
    group's name, which is the name of its class in small letters ("Table8": `table8`, "PointSets":
    `point_sets`).
    """

    @classmethod
    def key(cls) -> str:
        """Return its name in the configuration."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()


class ExperimentSettings(Closed):
    """Settings of one experiment in the configuration."""

    variants: Annotated[
        Listed[Variant], Field(description="Variants of the paper's numbers to compute.")
    ]
    parts: Parts = 1


class DataSettings(Closed):
    """Settings for the sources of data sets."""

    folder: FolderName | None = Field(
        None, description="Folder laid out as <dataset>/<file>; DPSUB_DATA goes first."
    )
    download: bool = Field(
        True, description="Whether the sources of data/SOURCES.csv may be tried."
    )
    fallback: Literal["synthetic", "error"] = Field(
        "synthetic",
        description="What to do when a data set cannot be obtained: make a labelled "
        "stand-in, or stop.",
    )


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the keys of `over` put in, mappings level by level; everything else is
    replaced whole."""
    merged = dict(base)
    for key, value in over.items():
        before = merged.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            value = merge(before, value)
        merged[key] = value
    return merged


def conform(model: type[BaseModel], mapping: Any, *, path: str = "") -> Any:
    """Return `mapping` as an instance of `model`; `path` stands before each key that an error
    names."""
    # Before JSON, which would write NaN and turn a date into an error of its own.
    refuse_odd_numbers(mapping, path)
    return _conformed(model, json.dumps(streams.canonical(mapping)), path)


# The same settings are asked for again and again by plans, parts and digests; text can be hashed.
@lru_cache(maxsize=1000)
def _conformed(model: type[BaseModel], text: str, path: str) -> Any:
    try:
        return model.model_validate_json(text)
    except ValidationError as problems:
        # One sentence: the problem that explains the others.
        first = min(problems.errors(include_url=False), key=_rank)
        raise PlanError(_sentence(model, first, path)) from None


def plain(chosen: BaseModel, *, exclude: set[str] | None = None) -> dict[str, Any]:
    """Return settings in plain JSON types, without those that the settings of an experiment leave
    open."""
    # the head of a configuration, which has the seed, keeps null where it is a choice
    without_none = "seed" not in type(chosen).model_fields
    settings = chosen.model_dump(exclude=exclude, exclude_none=without_none, warnings=False)
    return dict(streams.canonical(settings))


def refuse_odd_numbers(value: Any, path: str = "") -> None:
    """Refuse NaN, infinity, and values that are neither numbers nor text, such as dates."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            refuse_odd_numbers(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        for position, item in enumerate(value):
            refuse_odd_numbers(item, f"{path}[{position}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise PlanError(f"{path} must be finite, got {value}; write a number")
    elif not (value is None or isinstance(value, (str, bool, int, float))):
        raise PlanError(
            f"{path} must be a number, text, true, false or null, got {value!r}; put "
            "quotes around text"
        )


def _path(parts: Iterable[str | int], before: str = "") -> str:
    text = before
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text or "the configuration"


def _rank(problem: ErrorDetails) -> tuple[int, str]:
    """Unknown keys first: a misspelt key also makes the right one missing, and only the first hint
    helps."""
    kind = problem["type"]
    if kind == "too_short" and len(problem["input"]) >= problem["ctx"]["min_length"]:
        # pydantic counts the items that were accepted: another problem says what is wrong with them
        return 3, ""
    if kind == "extra_forbidden" or problem["loc"][-1:] == ("[key]",):
        order = 0
    elif kind in _NOUNS:
        order = 1
    else:
        order = 2
    return order, _path(problem["loc"])


_NOUNS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
}
_RULES = {
    "missing": "{path} is missing; add it",
    "greater_than_equal": "{path} must be at least {ge:g}, got {value}",
    "less_than_equal": "{path} must be at most {le:g}, got {value}",
    "greater_than": "{path} must be above {gt:g}, got {value}",
    "less_than": "{path} must be below {lt:g}, got {value}",
    "too_short": "{path} must have at least {min_length} value(s), got {count}",
    "too_long": "{path} must have at most {max_length} value(s), got {count}",
    "repeated": "{path} must not repeat a value, got {shown}",
    "string_pattern_mismatch": "{path} must not hold braces, angle brackets or control characters, "
    "got {shown}; choose "
    "another name",
    "string_too_short": "{path} must not be empty",
    "value_error": "{path}: {error}",
}


def _sentence(model: type[BaseModel], problem: ErrorDetails, before: str) -> str:
    """Return pydantic's message as one sentence: the rule, the value, the way out."""
    parts, value, kind = list(problem["loc"]), problem["input"], problem["type"]
    facts = problem.get("ctx", {})
    if kind == "extra_forbidden" or parts[-1:] == ["[key]"]:
        parts = [part for part in parts if part != "[key]"]
        unknown = str(parts[-1])
        keys = facts.get("names")
        if keys is None:
            keys = sorted(bare(_annotation(model, parts[:-1])).model_fields)
        # The old word is looked up by its new one, so that the hint names the setting that is
        # meant.
        near = checks.nearest(RENAMED.get(unknown, unknown), keys)
        return f"unknown configuration key {_path(parts, before)!r}; {near}"
    path, shown = _path(parts, before), _shown(value)
    if kind in _RULES:
        count = len(value) if isinstance(value, (list, tuple)) else 0
        return _RULES[kind].format(path=path, value=value, shown=shown, count=count, **facts)
    if kind == "literal_error":
        values = [str(known) for known in typing.get_args(bare(_annotation(model, parts)))]
        return f"unknown value {shown} of {path}; {checks.nearest(str(value), values)}"
    if kind == "unknown_name":
        return (
            f"unknown {facts['noun']} {value!r} in {path}; {checks.nearest(value, facts['names'])}"
        )
    if kind not in _NOUNS:
        return f"{path}: {problem['msg'][:1].lower()}{problem['msg'][1:]}, got {shown}"
    nothing = " or null" if type(None) in typing.get_args(_annotation(model, parts)) else ""
    hint = ""
    if kind in ("int_type", "float_type") and isinstance(value, str) and _is_number(value):
        hint = "; write it without quotes and with a decimal point (1.0e-3)"
    return f"{path} must be {_NOUNS[kind]}{nothing}, got {shown}{hint}"


def bare(annotation: Any) -> Any:
    """Return a type without its annotations, and without None."""
    while True:
        if typing.get_origin(annotation) is Annotated:
            annotation = typing.get_args(annotation)[0]
        elif typing.get_origin(annotation) in (typing.Union, types.UnionType):
            kinds = typing.get_args(annotation)
            annotation = next(kind for kind in kinds if kind is not type(None))
        else:
            return annotation


def _annotation(model: Any, parts: Iterable[str | int]) -> Any:
    """Return the annotation of the place `parts` inside `model`."""
    annotation = model
    for part in parts:
        inside = bare(annotation)
        if isinstance(inside, type) and issubclass(inside, BaseModel):
            annotation = inside.model_fields[str(part)].annotation
        else:  # a list, or a mapping of any keys to values of one kind
            annotation = typing.get_args(inside)[0 if isinstance(part, int) else 1]
    return annotation


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if not text.isprintable():  # signs that would turn the rest of the line around
        text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
