"""Configurations in YAML files, read without Python objects and with every error's line.

It needs PyYAML alone, so that Snakemake's own environment can check what it was given.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer

from dpsub.errors import DataError, PlanError
from dpsub.files import read_file

_MOST_VALUES = 100_000

_Splitter: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(Composer, _Splitter):
    """YAML without Python objects, in which a key given twice is an error and not a silent
    overwrite.

    The text is split by libyaml where PyYAML has it, which is ten times as fast; its pieces are put
    together in Python, where too deep a nesting is an error and not the end of the process.
    """

    def __init__(self, text: str) -> None:
        Composer.__init__(self)
        _Splitter.__init__(self, text)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        # how PyYAML fails at a tag that does not fit its value, such as !!bool x
        except (AttributeError, KeyError, ValueError):
            raise yaml.constructor.ConstructorError(
                None, None, "a tag does not fit its value", node.start_mark
            ) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is not text", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} comes twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def read(path: Path) -> dict[str, Any]:
    """Return the mapping in one YAML file; nothing in it is executed."""
    try:
        text = read_file(path).decode()
    except DataError as problem:
        raise PlanError(f"the configuration {path} cannot be read: {problem}") from None
    except OSError as problem:
        raise PlanError(
            f"the configuration {path} cannot be read ({problem.strerror}); name another file"
        ) from None
    except UnicodeDecodeError:
        raise PlanError(f"the configuration {path} must be UTF-8 text; save it as such") from None
    try:
        # A loader of plain data: no tag of a file can run anything.
        content = yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark
        where = f" at line {mark.line + 1}" if mark else ""
        raise PlanError(
            f"the configuration {path} is not valid YAML{where}: {problem.problem}"
        ) from None
    except (yaml.YAMLError, RecursionError) as problem:
        at = getattr(problem, "position", None)  # of a character that is none of YAML
        where = f" at line {text.count(chr(10), 0, at) + 1}" if at is not None else ""
        raise PlanError(
            f"the configuration {path} is not valid YAML{where}: {str(problem).splitlines()[0]}"
        ) from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise PlanError(
            f"the configuration {path} must hold a mapping of keys to values, got "
            f"{type(content).__name__}"
        )
    _refuse_endless(path, content)
    return content


def _refuse_endless(path: Path, content: Mapping[str, Any]) -> None:
    """Refuse mappings that a few aliases make enormous, or that contain themselves."""
    waiting: list[Any] = [content]
    for _ in range(_MOST_VALUES):
        if not waiting:
            return
        value = waiting.pop()
        if isinstance(value, (Mapping, list)):
            waiting += value.values() if isinstance(value, Mapping) else value
    raise PlanError(
        f"the configuration {path} must hold at most {_MOST_VALUES} values, got more; "
        "mend its aliases"
    )
