"""Forged certificates: files that claim what is false, made from honest ones.

Each claim lies past the true end, whatever its proof holds. So a forger may change anything in the
proof, and no file may be verified.
"""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any

import numpy as np

import dpsub
from tests.verifier.proving import as_stated

Data = dict[str, Any]

EXACT = {"delta": 0.05, "noise_multiplier": 1.5, "width": 0.1}
QUESTIONS: dict[str, tuple[Any, int | None, Data]] = {
    "poisson": (dpsub.Poisson(0.25), None, EXACT | {"steps": 2}),
    "poisson, laplace": (dpsub.Poisson(0.25), None, EXACT | {"mechanism": "laplace"}),
    "poisson, group": (dpsub.Poisson(0.25), None, EXACT | {"group": 2}),
    "wor, add_remove": (dpsub.Wor(2), 5, EXACT | {"steps": 2, "adjacency": "add_remove"}),
    "wor, of delta": (
        dpsub.Wor(2),
        5,
        {"noise_multiplier": 2.0, "epsilon": 0.2, "adjacency": "add_remove"},
    ),
    "wor": (dpsub.Wor(2), 5, EXACT | {"quick": True}),
    "wor, policy": (dpsub.Wor(2), 5, EXACT | {"steps": 2, "delta": 0.1}),
    "wor, zero_out": (dpsub.Wor(2), 5, EXACT | {"adjacency": "zero_out", "quick": True}),
    "wr": (dpsub.Wr(2), 5, EXACT | {"quick": True}),
    "must_ow, add_remove": (
        dpsub.MustOW(3, 2),
        5,
        EXACT | {"adjacency": "add_remove", "quick": True},
    ),
    "truncated": (dpsub.TruncatedPoisson(0.4, 2), 5, EXACT | {"quick": True}),
    "deterministic": (dpsub.Deterministic(2), 5, EXACT | {"adjacency": "zero_out"}),
    "cyclic": (dpsub.CyclicPoisson(0.5, 2), 6, EXACT | {"epochs": 2}),
    "shuffle": (dpsub.Shuffle(2), 6, EXACT | {"quick": True}),
    "shuffle, zero_out": (dpsub.Shuffle(2), 6, EXACT | {"adjacency": "zero_out", "quick": True}),
    "one order": (dpsub.PersistentShuffle(2), 6, EXACT | {"epochs": 3, "quick": True}),
    "one order, zero_out": (
        dpsub.PersistentShuffle(2),
        6,
        EXACT | {"epochs": 2, "adjacency": "zero_out", "quick": True},
    ),
    "one order, clones": (
        dpsub.PersistentShuffle(1),
        16,
        EXACT | {"epochs": 4, "noise_multiplier": 4.0, "quick": True},
    ),
    "allocation": (dpsub.RandomAllocation(2), None, EXACT | {"noise_multiplier": 1.0}),
    "allocation of several": (dpsub.RandomAllocation(4, 2), None, EXACT | {"quick": True}),
    "allocation, substitute": (
        dpsub.RandomAllocation(2),
        None,
        EXACT | {"adjacency": "substitute", "quick": True},
    ),
    "secret groups": (dpsub.SecretCyclicPoisson(0.5, 2), None, EXACT | {"epochs": 2}),
    "secret groups, substitute": (
        dpsub.SecretCyclicPoisson(0.5, 2),
        None,
        EXACT | {"adjacency": "substitute", "quick": True},
    ),
    "separated": (dpsub.MinSeparation(0.4, 2, 3), None, EXACT),
    "separated, substitute": (
        dpsub.MinSeparation(0.4, 2, 3, warm_start=True),
        None,
        EXACT | {"epochs": 2, "adjacency": "substitute", "quick": True},
    ),
    "separated, known steps": (
        dpsub.MinSeparation(1.0, 2, 3),
        None,
        EXACT | {"adjacency": "zero_out"},
    ),
}
"""Questions; each takes the verifier some hundredths of a second."""


@cache
def _honest(name: str) -> str:
    sampler, n, asked = QUESTIONS[name]
    return json.dumps(
        dpsub.account(sampler, n, **as_stated(sampler, asked)).certificate(), allow_nan=False
    )


def honest(name: str) -> Data:
    """Return the certificate of one of the questions, to be changed at will."""
    found: Data = json.loads(_honest(name))
    return found


# --- Claims past the true end ---------------------------------------------------------------------

FAR = (1e-4, 1e-2, 0.3, 1.0)


def false_claim(data: Data, end: str, generator: np.random.Generator) -> None:
    """Claim one end alone, past the other one, which is proved."""
    claim = data["claim"]
    share = float(generator.choice(FAR))
    if end == "upper":
        claim["upper"] = claim["lower"] * (1 - share)
        claim["lower"] = None
        return
    most = 1.0 - 1e-9 if data["question"]["quantity"] == "delta" else np.inf
    claim["lower"] = min(claim["upper"] * (1 + share * float(generator.choice([1.0, 1e3]))), most)
    claim["upper"] = None


# --- Changes of a proof ---------------------------------------------------------------------------

Place = tuple[Any, ...]


def leaves(data: Any, place: Place = ()) -> list[Place]:
    """Return all entries below one: numbers, words, and lists and objects as wholes. Of a long list
    of numbers the ends and the middle are enough."""
    found = [place] if place else []
    if isinstance(data, dict):
        for key, value in data.items():
            found += leaves(value, (*place, key))
    elif isinstance(data, list):
        few = {0, len(data) // 2, len(data) - 1} if len(data) > 4 else range(len(data))
        for index in sorted(i for i in few if 0 <= i < len(data)):
            found += leaves(data[index], (*place, index))
    return found


def at(data: Any, place: Place) -> Any:
    for key in place:
        data = data[key]
    return data


def put(data: Any, place: Place, value: Any) -> None:
    at(data, place[:-1])[place[-1]] = value


WORDS = (
    *("forward", "backward", "sum", "largest step", "all steps", "step functions"),
    *("1", "2", "4", "9", "16", "17", "19", "25", "27", "47", "61", "72", "substitution", "15"),
    *("85", "87", "89", "sum of all steps", "-1 or 1", "3.2", "gaussian"),
)


def changed(value: Any, generator: np.random.Generator) -> Any:
    """Return another value of an entry, of its own kind most often."""
    pick = generator.integers
    if isinstance(value, bool) or value is None:
        return [0, 1.0, {}, [], "1"][int(pick(5))]
    if isinstance(value, int):
        options = [value + 1, value - 1, 2 * value, 0, -value, value // 2, 10**9, float(value)]
        return options[int(pick(len(options)))]
    if isinstance(value, float):
        options = [0.0, value * 0.5, value * 2, value * 1.01, value * 0.99, -value, 1.0, 1e3]
        return [*options, value + 1, value - 1, 1e-9, None, True][int(pick(13))]
    if isinstance(value, str):
        return WORDS[int(pick(len(WORDS)))]
    if isinstance(value, dict):
        return _changed_object(value, generator)
    return _changed_list(value, generator)


def _changed_object(value: Data, generator: np.random.Generator) -> Data:
    keys = list(value)
    if not keys or generator.random() < 0.2:
        return {**value, "kept_for": 1}
    if generator.random() < 0.3:
        return {key: entry for key, entry in value.items() if key != keys[-1]}
    one, other = (keys[int(i)] for i in generator.integers(len(keys), size=2))
    return {**value, one: value[other], other: value[one]}


def _changed_list(value: list[Any], generator: np.random.Generator) -> list[Any]:
    if value and all(type(x) in (int, float) for x in value):
        return _changed_numbers(value, generator)
    middle = len(value) // 2
    options = [
        [],
        value[:-1],
        value[1:],
        [*value, *value],
        value[::-1],
        value[:middle],
        [*value, 0],
    ]
    return copy.deepcopy(options[int(generator.integers(len(options)))])


def _changed_numbers(value: list[Any], generator: np.random.Generator) -> list[Any]:
    """Return masses moved up or down, more or fewer of them; losses and edges moved."""
    kind = type(value[0])
    cut = int(generator.integers(len(value) + 1))
    factor = float(generator.choice([0.0, 0.5, 0.9, 1.1, 2.0, 1e3]))
    options = [
        [kind(x * factor) for x in value],
        [kind(x * factor) if i < cut else x for i, x in enumerate(value)],
        [kind(x * factor) if i >= cut else x for i, x in enumerate(value)],
        [value[-1], *value[:-1]],
        [*value[1:], value[0]],
        [kind(x + 1) for x in value],
        [kind(x - 1) for x in value],
        [kind(0)] * (len(value) - 1) + [kind(1)],
        [kind(1)] + [kind(0)] * (len(value) - 1),
        value[:cut],
        value[::-1],
        [kind(0)],
        [-x for x in value],
    ]
    return options[int(generator.integers(len(options)))]


LAW = ("step", "offset", "indices", "masses", "infinity")


def moved_law(law: Data, upwards: bool, generator: np.random.Generator) -> None:
    """Return a law that would prove the claim if it held: smaller losses or masses for an upper
    end, larger ones for a lower one."""
    sign = 1 if upwards else -1
    choice = int(generator.integers(6))
    if choice == 0:
        law["offset"] += sign * law["step"] * float(generator.choice([1, 10, 1000]))
    elif not all(type(mass) is float for mass in law["masses"]):
        law["masses"] = [1.0] * len(law["indices"])
    elif choice == 1:
        law["masses"] = [mass * (1 + sign * 0.5) for mass in law["masses"]]
    elif choice == 2:
        end = law["indices"][-1] if upwards else law["indices"][0]
        law["indices"], law["masses"] = [end], [1.0]
    elif choice == 3:
        law["infinity"] = 0.5 if upwards else 0.0
        law["masses"] = [mass * 0.5 for mass in law["masses"]]
    elif choice == 4:
        law["step"] *= 3.0 if upwards else 0.2
    else:
        moved = int(sign * float(generator.choice([1, 30])))
        law["indices"] = [index + moved for index in law["indices"]]


def laws_of(data: Any) -> list[Data]:
    if isinstance(data, list):
        return [law for each in data for law in laws_of(each)]
    if not isinstance(data, dict):
        return []
    own = [data] if set(data) == set(LAW) else []
    return own + [law for each in data.values() for law in laws_of(each)]


def forged(seed: int) -> tuple[Data, str]:
    """Return the forgery of a number, and the name of the question it is made from."""
    generator = np.random.default_rng([4100, seed])
    names = list(QUESTIONS)
    name = names[seed % len(names)]
    end = ("upper", "lower")[int(generator.integers(2))]
    data = honest(name)
    false_claim(data, end, generator)
    for _ in range(int(generator.integers(1, 4))):
        kind = generator.random()
        if kind < 0.4:
            for law in laws_of(data[end]):
                moved_law(law, end == "lower", generator)
        elif kind < 0.9:
            places = leaves(data[end])
            place = places[int(generator.integers(len(places)))]
            put(data[end], place, changed(at(data[end], place), generator))
        else:
            _of_another(data, end, generator)
    return data, f"{name}, {end}"


def _of_another(data: Data, end: str, generator: np.random.Generator) -> None:
    """Put the proof of another certificate in its place, or parts of it next to its own."""
    names = list(QUESTIONS)
    other = honest(names[int(generator.integers(len(names)))])[end]
    mine = data[end]
    for key in ("parts", "forward", "backward"):
        if isinstance(mine, dict) and mine.get(key) and other.get(key) and generator.random() < 0.5:
            mine[key] = [*mine[key], *other[key]] if generator.random() < 0.5 else other[key]
            return
    data[end] = other
