"""Configurations: YAML files merged, checked against a closed schema, and reduced to one canonical form."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from yaml.composer import Composer

from dpsub import checks, noise, sampling, streams
from dpsub.errors import ArgumentError, PlanError, UnsupportedError
from dpsub.reproduce import experiments

RENAMED = {"scheme": "sampler", "schemes": "samplers"}
"""Keys of earlier releases, refused with the new word."""

_MOST_VALUES = 100_000
_NOUNS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping of keys to values",
    "null": "null",
}


_Splitter: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(Composer, _Splitter):
    """YAML without Python objects, in which a key given twice is an error and not a silent overwrite.

    The text is split by libyaml where PyYAML has it, which is ten times as fast; its pieces are put together in Python,
    where too deep a nesting is an error and not the end of the process.
    """

    def __init__(self, text: str) -> None:
        Composer.__init__(self)
        _Splitter.__init__(self, text)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is not text", key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} comes twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def read(path: Path) -> dict[str, Any]:
    """Return the mapping in one YAML file; nothing in it is executed.

    Raises
    ------
    PlanError
        If the file cannot be read, is not YAML, or holds something else than a mapping.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as problem:
        raise PlanError(f"the configuration {path} cannot be read ({problem.strerror}); name another file") from None
    except UnicodeDecodeError:
        raise PlanError(f"the configuration {path} must be UTF-8 text; save it as such") from None
    try:
        found = yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark
        where = f" at line {mark.line + 1}" if mark else ""
        raise PlanError(f"the configuration {path} is not valid YAML{where}: {problem.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as problem:
        raise PlanError(f"the configuration {path} is not valid YAML: {str(problem).splitlines()[0]}") from None
    except (AttributeError, KeyError):  # how PyYAML fails at a tag that does not fit its value, such as !!bool x
        raise PlanError(f"the configuration {path} is not valid YAML: a tag does not fit its value") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise PlanError(f"the configuration {path} must hold a mapping of keys to values, got {type(found).__name__}")
    _refuse_endless(path, found)
    return found


def _refuse_endless(path: Path, found: Mapping[str, Any]) -> None:
    """Refuse what a few aliases blow up beyond measure, or to what holds itself."""
    waiting: list[Any] = [found]
    for _ in range(_MOST_VALUES):
        if not waiting:
            return
        value = waiting.pop()
        if isinstance(value, (Mapping, list)):
            waiting += value.values() if isinstance(value, Mapping) else value
    raise PlanError(f"the configuration {path} must hold at most {_MOST_VALUES} values, got more; mend its aliases")


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the keys of `over` put in, mappings level by level; everything else is replaced whole."""
    merged = dict(base)
    for key, value in over.items():
        before = merged.get(key)
        merged[key] = merge(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return merged


def load(paths: Iterable[Path], *, schema: Path) -> dict[str, Any]:
    """Return the configuration in the files `paths`, later ones over earlier ones, validated and canonical.

    Raises
    ------
    PlanError
        As :func:`read` and :func:`validate`.
    """
    merged: dict[str, Any] = {}
    for path in paths:
        merged = merge(merged, read(path))
    return validate(merged, schema=schema)


def validate(config: Mapping[str, Any], *, schema: Path) -> dict[str, Any]:
    """Return the canonical form of `config` if it keeps the schema and every experiment accepts its settings.

    An experiment that is set to null is left out, so that a smaller configuration can switch it off.

    Raises
    ------
    PlanError
        With the path of the first offending key, the rule, what came, and the nearest known key or value.
    """
    present = dict(config)
    if isinstance(present.get("experiments"), Mapping):
        present["experiments"] = {name: value for name, value in present["experiments"].items() if value is not None}
    conformed = conform(present, schema=schema)
    for name, chosen in conformed["experiments"].items():
        experiment = experiments.REGISTRY.get(name)()
        unknown = sorted(set(chosen["variants"]) - set(experiment.variants))
        if unknown:
            known = ", ".join(experiment.variants)
            raise PlanError(f"experiments.{name}.variants must be among {known}, got {unknown[0]!r}")
        try:
            experiment.check(chosen)
            most = experiment.replicates(chosen)
        except (ArgumentError, UnsupportedError, PlanError) as problem:
            raise PlanError(f"experiments.{name}: {problem}") from None
        if chosen["parts"] > most:
            raise PlanError(
                f"experiments.{name}.parts must be at most the number of replicates = {most}, "
                f"got parts = {chosen['parts']}"
            )
    return conformed


def conform(config: Mapping[str, Any], *, schema: Path) -> dict[str, Any]:
    """Return the canonical form of `config` if it keeps the schema.

    Raises
    ------
    PlanError
        As :func:`validate`.
    """
    _refuse_odd_numbers(config, "")
    problems = sorted(_validator(schema).iter_errors(config), key=_rank)
    if problems:
        raise PlanError(_sentence(problems[0]))
    return canonical(config)


def check_results_dir(folder: str) -> None:
    """Refuse a results folder in which the working folder lies, whose files the results would mix with.

    Raises
    ------
    PlanError
    """
    if Path.cwd().is_relative_to(Path(folder).resolve()):
        raise PlanError(
            f"results_dir must be a folder of its own, got {folder!r}, in which the project lies; "
            "name a new folder, such as results-mine"
        )


def of_experiment(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the settings of one experiment without those that only say how much of it is computed where."""
    return {key: value for key, value in config["experiments"][name].items() if key not in ("parts", "variants")}


def canonical(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return `mapping` in plain JSON types, in which 1, 1.0 and ``np.int64(1)`` are the same."""
    reduced: dict[str, Any] = streams.canonical(mapping)
    return reduced


@cache
def _validator(schema: Path) -> jsonschema.Draft202012Validator:
    checker = jsonschema.FormatChecker(formats=())
    for noun, names in _formats().items():
        checker.checks(noun)(lambda value, names=names: not isinstance(value, str) or value in names)
    return jsonschema.Draft202012Validator(read(schema), format_checker=checker)


def _formats() -> dict[str, tuple[str, ...]]:
    return {
        "sampler": sampling.REGISTRY.names(),
        "mechanism": noise.REGISTRY.names(),
    }


def _refuse_odd_numbers(value: Any, path: str) -> None:
    """Refuse what JSON schema cannot: NaN and infinity, dates, and numbers that YAML reads as text (1e-3)."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            _refuse_odd_numbers(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _refuse_odd_numbers(item, f"{path}[{position}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise PlanError(f"{path} must be finite, got {value}; write a number")
    elif not (value is None or isinstance(value, (str, bool, int, float))):
        raise PlanError(f"{path} must be a number, text, true, false or null, got {value!r}; put quotes around text")


def _path(parts: Iterable[str | int]) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text or "the configuration"


def _rank(problem: jsonschema.ValidationError) -> tuple[int, str, str]:
    """Unknown keys first: a misspelt key also makes the right one missing, and only the first hint helps."""
    order = {"additionalProperties": 0, "type": 1}
    return order.get(str(problem.validator), 2), problem.json_path, problem.message


def _sentence(problem: jsonschema.ValidationError) -> str:
    path, value, rule = _path(problem.absolute_path), problem.instance, problem.validator_value
    match problem.validator:
        case "additionalProperties":
            known = sorted(problem.schema.get("properties", {}))
            unknown = sorted(set(value) - set(known))[0]
            full = _path([*problem.absolute_path, unknown])
            return f"unknown configuration key {full!r}; {checks.nearest(RENAMED.get(unknown, unknown), known)}"
        case "required":
            missing = sorted(set(rule) - set(value))[0]
            return f"{_path([*problem.absolute_path, missing])} is missing; add it"
        case "type":
            wanted = [rule] if isinstance(rule, str) else rule
            nouns = " or ".join(_NOUNS[noun] for noun in wanted)
            hint = ""
            if isinstance(value, str) and {"number", "integer"} & set(wanted) and _is_number(value):
                hint = "; write it without quotes and with a decimal point (1.0e-3)"
            return f"{path} must be {nouns}, got {_shown(value)}{hint}"
        case "minimum":
            return f"{path} must be at least {rule}, got {value}"
        case "maximum":
            return f"{path} must be at most {rule}, got {value}"
        case "exclusiveMinimum":
            return f"{path} must be above {rule}, got {value}"
        case "exclusiveMaximum":
            return f"{path} must be below {rule}, got {value}"
        case "enum":
            return f"unknown value {_shown(value)} of {path}; {checks.nearest(str(value), list(map(str, rule)))}"
        case "format":
            return f"unknown {rule} {value!r} in {path}; {checks.nearest(value, sorted(_formats()[rule]))}"
        case "minItems":
            return f"{path} must have at least {rule} value(s), got {len(value)}"
        case "maxItems":
            return f"{path} must have at most {rule} value(s), got {len(value)}"
        case "uniqueItems":
            return f"{path} must not repeat a value, got {_shown(value)}"
        case "pattern":
            signs = "braces, angle brackets or control characters"
            return f"{path} must not hold {signs}, got {_shown(value)}; choose another name"
        case "minLength":
            return f"{path} must not be empty"
    return f"{path} must keep the rule {problem.validator} = {rule}, got {_shown(value)}"


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(checks.real("text", float(text)))
    except (ValueError, ArgumentError):
        return False


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if not text.isprintable():  # signs that would turn the rest of the line around
        text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
