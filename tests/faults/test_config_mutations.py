"""The configuration with one value changed, at every key: refused with the key's name, or a plan
that can be run."""

from __future__ import annotations

import copy
import math
import random
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from dpsub.errors import PlanError
from dpsub.reproduce import configuration
from dpsub.reproduce.plan import Plan
from tests.workflow import runs

WHOLE = configuration.load([runs.ROOT / "config.yaml"])
FIRST = min(WHOLE["experiments"])
Path = tuple[str | int, ...]
REMOVED = object()
SLOWEST = 2.0  # seconds of processor time for one refusal or plan


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every mapping's value; of a list, only those in its first item."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from places(inner, (*path, key))
    elif isinstance(value, list) and value:
        if not isinstance(value[0], dict):
            yield (*path, 0)
        yield from places(value[0], (*path, 0))


def at(config: Any, path: Path) -> Any:
    for key in path:
        config = config[key]
    return config


def changed(path: Path, value: Any) -> dict[str, Any]:
    """Return the configuration with one value changed, and of the experiments only the one that it
    concerns."""
    config = {key: inner for key, inner in WHOLE.items() if key != "experiments"}
    names = path[1:2] if path[0] == "experiments" and len(path) > 1 else (FIRST,)
    config["experiments"] = {
        name: inner if name in names else None for name, inner in WHOLE["experiments"].items()
    }
    return replaced(config, path, value)


def replaced(config: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """Return a copy of a configuration with one value changed, or removed."""
    config = copy.deepcopy(config)
    *above, last = path
    place = at(config, tuple(above))
    if value is REMOVED:
        del place[last]
    else:
        place[last] = value
    return config


def mutations(value: Any) -> list[Any]:
    """Return what `value` is replaced with: other types, and numbers out of every range."""
    if isinstance(value, dict):
        return [REMOVED, [], "text", {**value, "surprise": 1}]
    if isinstance(value, list):
        return [REMOVED, {}, [], [*value, math.nan], [None]]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return [
            REMOVED,
            f"{value}",
            True,
            [value],
            -value,
            0,
            math.nan,
            10**30,
            1e-300,
            value + 0.5,
        ]
    return [REMOVED, 7, [value], {}, "</script>\n\0../../x"]


AT_ODDS = {
    "b_max": "b",
    "b_min": "b_max",
    "bound": "half_width",
    "clip": "scale|noise_multiplier",
    "dataset": "data set",
    "datasets": "data set",
    "epsilon": "low_split",
    "epsilon_amplified": "scale|noise_multiplier",
    "epsilon_amplified_step": "epsilon_amplified_max",
    "epsilon_min": "epsilon_max",
    "epsilon_step": "epsilon_max",
    "example_m": "m",
    "half_width": "epsilon",
    "lower": "upper",
    "m_max": "m",
    "m_min": "m_max",
    "scale": "noise_multiplier",
    "scale_min": "scale_max",
    "sigma_min": "sigma",
}
"""Names that a refusal may give instead: the key that contradicts the changed one, or a property of
both together."""
PLACES = [path for path in places(WHOLE) if not isinstance(path[-1], int)]
CASES = [(path, value) for path in PLACES for value in mutations(at(WHOLE, path))]


def outcome(path: Path, value: Any) -> str:
    """Return the sentence of the refusal, "" for a plan."""
    started = time.process_time()
    try:
        plan = Plan(configuration.validate(changed(path, value)))
        assert all(
            plan.record(part).suffix == ".parquet"
            for name in plan.experiments
            for part in plan.parts(name)
        )
        told = ""
    except PlanError as refusal:
        told = str(refusal)
    assert time.process_time() - started < SLOWEST, (path, value)
    return told


def names_the_key(path: Path, sentence: str) -> bool:
    """Return whether a sentence says which experiment, and which key is meant: by its name, or
    without its plural s."""
    keys = [str(key) for key in path if not isinstance(key, int)]
    if len(keys) > 1 and keys[0] == "experiments" and keys[1] not in sentence:
        return False
    wanted = "|".join(
        [re.escape(keys[-1].removesuffix("s")), *filter(None, [AT_ODDS.get(keys[-1])])]
    )
    return re.search(rf"\b({wanted})", sentence) is not None


@pytest.mark.parametrize("count", [1200, pytest.param(len(CASES), marks=pytest.mark.slow)])
def test_a_changed_value_is_refused_by_name_or_gives_a_plan(count: int) -> None:
    odd, accepted = [], 0
    for path, value in random.Random(20231220).sample(CASES, count):
        try:
            told = outcome(path, value)
        except Exception as problem:  # the fault that is looked for: anything but a sentence
            odd.append((path, value, f"{type(problem).__name__}: {problem}"))
            continue
        accepted += not told
        if told and (not names_the_key(path, told) or "\n" in told or len(told) > 2000):
            odd.append((path, value, told))
    assert odd == []
    assert 0 < accepted < count / 2


def test_a_number_written_otherwise_is_the_same_configuration() -> None:
    tried = 0
    for path in PLACES:
        value = at(WHOLE, path)
        if (
            isinstance(value, (int, float))
            and not isinstance(value, bool)
            and float(value).is_integer()
        ):
            other = float(value) if isinstance(value, int) else int(value)
            assert configuration.validate(changed(path, other)) == configuration.validate(
                changed(path, value)
            )
            tried += 1
    assert tried > 50
