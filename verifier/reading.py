"""Read a certificate from a file: strict JSON in a closed schema, all of it checked before anything
is computed.

A false claim that passes here would have to say one thing to this program and another one to
whoever reads the file. So no key stands twice, none is unknown and none is missing, a number is a
finite double (true is none), and everything has a largest size.
"""

import hashlib
import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Any

from balls import NotCovered, Unreadable

SCHEMA = 1
MOST_BYTES = 2**26
MOST_DIGITS = 19
LARGEST_WHOLE = 2**53  # beyond it a double does not tell whole numbers apart
LARGEST_INDEX = 2**31
LARGEST = 1e300  # limit of real numbers, so that products with numbers near 1 stay finite
MOST_TEXT = 200

# A shape takes what was parsed, and where it stands; it returns the same with real numbers as
# floats, or raises `Unreadable`.
Shape = Callable[[Any, str], Any]


@dataclass(frozen=True)
class Source:
    """Bytes of a file, told by their digest, and their content."""

    digest: str
    data: dict


def read_file(path: str) -> Source:
    """Read a file, whose hash is that of the very bytes that are parsed."""
    content = content_of(path)
    return Source(hashlib.sha256(content).hexdigest(), certificate(parsed(content), "certificate"))


def content_of(path: str) -> bytes:
    """Return the bytes of a file: the one place where they are read."""
    try:
        # a pipe or a device may have no end, and opening one may wait for ever
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise Unreadable("it is no ordinary file")
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise Unreadable(f"{shown(path)} cannot be read ({reason}); name another file") from None
    except ValueError:
        raise Unreadable(f"{shown(path)} is no name of a file; name another file") from None
    if len(content) > MOST_BYTES:
        raise Unreadable(f"it has more than {MOST_BYTES} bytes")
    return content


def parsed(content: bytes) -> Any:
    """Parse JSON that no two readers understand differently."""
    try:
        return json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_without_repeats,
            parse_int=_whole_number,
            parse_float=_finite,
            parse_constant=_no_constant,
        )
    except Unreadable:
        raise
    except RecursionError:
        raise Unreadable("it is nested too deeply") from None
    except ValueError as error:
        raise Unreadable(f"it is no JSON: {error}") from None


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise Unreadable(f"the key {shown(name)} stands twice in one object")
        found[name] = value
    return found


def _whole_number(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise Unreadable(f"a whole number has {len(text)} digits, at most {MOST_DIGITS} are read")
    return int(text)


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise Unreadable(f"the number {shown(text)} is no finite double")
    return value


def _no_constant(text: str) -> None:
    raise Unreadable(f"{text} is no number of JSON")


def shown(value: Any) -> str:
    """Text of a value for a message: a file's words are not repeated at any length."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# --- Shapes ---------------------------------------------------------------------------------------


def record(required: dict[str, Shape], optional: dict[str, Shape] | None = None) -> Shape:
    """Shape of an object with these keys and no other."""
    known = required | (optional or {})

    def read(value: Any, where: str) -> dict[str, Any]:
        if type(value) is not dict:
            raise Unreadable(f"{where} must be an object, got {shown(value)}")
        unknown = [key for key in value if key not in known]
        if unknown:
            raise Unreadable(f"{where} has no entry {shown(unknown[0])}")
        missing = [key for key in required if key not in value]
        if missing:
            raise Unreadable(f"{where} needs the entry {missing[0]!r}")
        return {key: known[key](entry, f"{where}, {key}") for key, entry in value.items()}

    return read


def told_by(key: str, kinds: dict[str, Shape], what: str) -> Shape:
    """Shape of an object whose entry `key` tells which of several shapes it has; one that this
    program does not know is not covered."""

    def read(value: Any, where: str) -> Any:
        name = value.get(key) if type(value) is dict else None
        if type(name) is not str:
            raise Unreadable(f"{where} must be an object with a text {key!r}, got {shown(value)}")
        if name not in kinds:
            raise NotCovered(f"{what} {name[:MOST_TEXT] if name.isprintable() else shown(name)}")
        return kinds[name](value, where)

    return read


def listed(shape: Shape, most: int, least: int = 1) -> Shape:
    def read(value: Any, where: str) -> list:
        if type(value) is not list or not least <= len(value) <= most:
            raise Unreadable(f"{where} must be a list of {least} to {most} entries")
        return [shape(entry, f"{where} {place}") for place, entry in enumerate(value)]

    return read


def whole(least: int, most: int = LARGEST_WHOLE) -> Shape:
    def read(value: Any, where: str) -> int:
        if type(value) is not int or not least <= value <= most:
            raise Unreadable(
                f"{where} must be a whole number from {least} to {most}, got {shown(value)}"
            )
        return value

    return read


def real(least: float, most: float = LARGEST) -> Shape:
    """Read a double, or a whole number that is one exactly."""

    def read(value: Any, where: str) -> float:
        is_number = type(value) is float or (type(value) is int and abs(value) <= LARGEST_WHOLE)
        if not is_number or not least <= value <= most:
            raise Unreadable(
                f"{where} must be a number from {least:g} to {most:g}, got {shown(value)}"
            )
        return float(value)

    return read


def text(*choices: str) -> Shape:
    """Shape of one of these words, or of any short line that can be printed."""

    def read(value: Any, where: str) -> str:
        is_line = type(value) is str and len(value) <= MOST_TEXT and value.isprintable()
        if not is_line or (choices and value not in choices):
            wanted = f"one of {', '.join(choices)}" if choices else "a short line of text"
            raise Unreadable(f"{where} must be {wanted}, got {shown(value)}")
        return value

    return read


def only_true(value: Any, where: str) -> bool:
    """Read true; where it is not so the entry is left out, so that one question has one form."""
    if value is not True:
        raise Unreadable(f"{where} must be true or left out, got {shown(value)}")
    return True


def truth(value: Any, where: str) -> bool:
    if type(value) is not bool:
        raise Unreadable(f"{where} must be true or false, got {shown(value)}")
    return value


def optional(shape: Shape) -> Shape:
    """Shape of a value that may be null."""
    return lambda value, where: None if value is None else shape(value, where)


def tupled(*shapes: Shape) -> Shape:
    """Shape of a list of as many entries, each of its own shape."""

    def read(value: Any, where: str) -> list:
        if type(value) is not list or len(value) != len(shapes):
            raise Unreadable(f"{where} must be a list of {len(shapes)} entries")
        pairs = zip(shapes, value, strict=True)
        return [shape(entry, f"{where} {place}") for place, (shape, entry) in enumerate(pairs)]

    return read


def reals(least: float, most: float = LARGEST, count: int = 2**22, fewest: int = 1) -> Shape:
    """Shape of a long list of doubles."""

    def read(value: Any, where: str) -> list[float]:
        if type(value) is not list or not fewest <= len(value) <= count:
            raise Unreadable(f"{where} must be a list of {fewest} to {count} numbers")
        one = real(least, most)
        return [
            x if type(x) is float and least <= x <= most else one(x, f"{where} {place}")
            for place, x in enumerate(value)
        ]

    return read


def wholes(least: int, most: int, count: int = 2**22) -> Shape:
    def read(value: Any, where: str) -> list[int]:
        one = whole(least, most)
        if type(value) is not list or not 1 <= len(value) <= count:
            raise Unreadable(f"{where} must be a list of 1 to {count} whole numbers")
        return [
            x if type(x) is int and least <= x <= most else one(x, f"{where} {place}")
            for place, x in enumerate(value)
        ]

    return read


# --- The question ---------------------------------------------------------------------------------

# Of numbers only what they are; which ones may be asked for is told by the rules of `question`.
NUMBER, REAL = whole(-LARGEST_WHOLE), real(-LARGEST)
NAME = {"name": text()}

SAMPLERS = {
    "poisson": record(NAME | {"rate": REAL}),
    "wor": record(NAME | {"m": NUMBER}),
    "wr": record(NAME | {"m": NUMBER}),
    "weighted_wr": record(NAME | {"m": NUMBER, "largest_weight": REAL}),
    "must_oo": record(NAME | {"b": NUMBER, "m": NUMBER}),
    "must_ow": record(NAME | {"b": NUMBER, "m": NUMBER}),
    "must_wo": record(NAME | {"b": NUMBER, "m": NUMBER}),
    "must_ww": record(NAME | {"b": NUMBER, "m": NUMBER}),
    "multistage": record(
        NAME
        | {
            "chain": listed(
                told_by(
                    "kind",
                    {
                        "wor": record({"kind": text(), "size": NUMBER}),
                        "wr": record({"kind": text(), "size": NUMBER}),
                        "poisson": record({"kind": text(), "rate": REAL}),
                    },
                    "a stage",
                ),
                most=20,
            )
        }
    ),
    "truncated_poisson": record(NAME | {"rate": REAL, "max_batch": NUMBER}),
    "deterministic": record(NAME | {"m": optional(NUMBER)}, {"drop_last": only_true}),
    "cyclic_poisson": record(NAME | {"rate": REAL, "cycle": NUMBER}),
    "shuffle": record(NAME | {"m": NUMBER}, {"drop_last": only_true}),
    "persistent_shuffle": record(NAME | {"m": NUMBER}, {"drop_last": only_true}),
    "random_allocation": record(NAME | {"t": NUMBER, "k": NUMBER}),
    "secret_cyclic_poisson": record(NAME | {"rate": REAL, "cycle": NUMBER}),
    "min_separation": record(
        NAME | {"rate": REAL, "separation": NUMBER, "t": NUMBER, "warm_start": truth}
    ),
}


def group(value: Any, where: str) -> int | list[int]:
    """Read how many records of one unit differ; of a mixed change, how many are added and
    removed."""
    if type(value) is list:
        return tupled(NUMBER, NUMBER)(value, where)
    return NUMBER(value, where)


RELEASE = record(
    {
        "sampler": told_by("name", SAMPLERS, "sampler"),
        "n": optional(NUMBER),
        "noise_multiplier": REAL,
        "steps": NUMBER,
        "mechanism": text(),
        "denominator": text("fixed", "realised"),
        "sample": optional(text()),
    },
    {"group": group, "one_sided": only_true},
)


def question(value: Any, where: str) -> dict:
    """Read what is asked; `given` is the one of epsilon and delta that is not claimed."""
    found = record(
        {
            "releases": listed(RELEASE, most=1000),
            "adjacency": text("add_remove", "substitute", "zero_out"),
            "quantity": text("epsilon", "delta"),
            "given": record({}, {"delta": REAL, "epsilon": REAL}),
        }
    )(value, where)
    other = "delta" if found["quantity"] == "epsilon" else "epsilon"
    if list(found["given"]) != [other]:
        raise Unreadable(f"{where}, given must hold {other} alone, as {found['quantity']} is asked")
    return found


# --- Laws and parts -------------------------------------------------------------------------------

SIZE = whole(1)
INDEX = whole(-LARGEST_INDEX, LARGEST_INDEX)


def law(value: Any, where: str) -> dict:
    """Read masses at the losses offset + index step, in an order in which indices do not fall."""
    found = record(
        {
            "step": real(1e-30, 1e6),
            "offset": real(-1e12, 1e12),
            "indices": wholes(-LARGEST_INDEX, LARGEST_INDEX),
            "masses": reals(0.0),
            "infinity": real(0.0),
        }
    )(value, where)
    if len(found["indices"]) != len(found["masses"]):
        raise Unreadable(f"{where} needs one index for each mass")
    if found["indices"] != sorted(found["indices"]):
        raise Unreadable(f"{where} has indices that fall")
    return found


def rising(values: list, where: str) -> list:
    if any(left >= right for left, right in pairwise(values)):
        raise Unreadable(f"{where} must rise")
    return values


def rising_reals(least: float, most: float = LARGEST) -> Shape:
    return lambda value, where: rising(reals(least, most)(value, where), where)


def sum_of_ratios(value: Any, where: str) -> dict:
    """A law of a likelihood ratio, of its own or made from two earlier ones of the list."""
    found = record(
        {
            "terms": SIZE,
            "of": optional(tupled(whole(0), whole(0))),
            "ratios": rising_reals(0.0),
            "masses": reals(0.0),
            "lost": real(0.0),
            "edges": reals(0.0, fewest=0),
        },
        {"product": only_true},
    )(value, where)
    if len(found["ratios"]) != len(found["masses"]):
        raise Unreadable(f"{where} needs one ratio for each mass")
    return found


SUMS = listed(sum_of_ratios, most=200)
REVEALED = listed(record({"times": SIZE, "law": law, "sums": SUMS}), most=2)
BOTH_REVEALED = record({"forward": REVEALED, "backward": REVEALED})
EDGES = rising_reals(-1e6, 1e6)
LOG_ORDERS = rising_reals(0.0, 1e6)

BLOCK = record(
    {
        "steps": SIZE,
        "own": SIZE,
        "sums": listed(
            record({"edges": EDGES, "first": INDEX, "together": SIZE, "count": SIZE}), most=20
        ),
        "orders": record({"forward": LOG_ORDERS, "backward": LOG_ORDERS}),
        "revealed": BOTH_REVEALED,
    }
)
ORDERS = listed(
    record({"loss": real(0.0, 100.0), "steps": SIZE, "unit": real(1e-30, 1e6)}), 10_000, least=0
)
REFERENCES = listed(
    record({"steps": SIZE, "record": BOTH_REVEALED}, {"empty": BOTH_REVEALED}), 100, least=0
)
WEIGHTS = record(
    {
        "levels": rising_reals(1.0),
        "places": lambda value, where: rising(wholes(0, LARGEST_WHOLE)(value, where), where),
        "orders": listed(
            record(
                {
                    "loss": real(0.0, 100.0),
                    "unit": real(1e-30, 1e6),
                    "laws": listed(
                        record(
                            {
                                "tilt": real(1e-30),
                                "level": whole(0),
                                "first_cut": whole(0),
                                "cuts": wholes(0, LARGEST_WHOLE),
                            }
                        ),
                        most=2,
                    ),
                }
            ),
            10_000,
            least=0,
        ),
    }
)
CLONES = listed(
    record(
        {
            "loss": real(0.0, 100.0),
            "weight": real(1e-300, 1 - 2**-53),
            "counts": lambda value, where: rising(wholes(2, LARGEST_INDEX)(value, where), where),
            "grids": listed(
                record(
                    {
                        "unit": real(1e-30, 1e6),
                        "first": whole(-LARGEST_INDEX, -1),
                        "last": whole(1, LARGEST_INDEX),
                    }
                ),
                most=2,
            ),
        }
    ),
    10_000,
    least=0,
)
PLACE = whole(0, 999)  # place of a release or a block in its list

OF_ALL = {"release": PLACE, "times": SIZE, "law": law}
OF_UPPER = OF_ALL | {"theorem": text(), "section": text()}
PLAIN = record(OF_UPPER)
# a law of a record that is in all steps is proved by the theorem alone
MORE: dict[str, Shape] = {
    "25": record(OF_UPPER, {"sums": SUMS}),
    "27": record(OF_UPPER, {"sums": SUMS}),
    "72": record(OF_UPPER, {"sums": SUMS, "block": PLACE}),
    "85": record(OF_UPPER | {"sums": SUMS}),
    "87 (i)": record(OF_UPPER | {"steps": record({"missed": law, "drawn": law})}),
    "substitution": record(OF_UPPER, {"revealed": BOTH_REVEALED}),
    "61": record(
        OF_UPPER | {"orders": ORDERS, "references": REFERENCES},
        {"weights": WEIGHTS, "clones": CLONES},
    ),
    "89": record(OF_UPPER | {"clones": CLONES}),
}
PLAIN_THEOREMS = [
    *("1", "2", "4", "6", "9", "10", "16", "17", "18", "19"),
    *("35", "36", "37", "38", "47", "71", "73", "87"),
]
UPPER_PART = told_by("theorem", dict.fromkeys(PLAIN_THEOREMS, PLAIN) | MORE, "theorem")

CONTRIBUTION = real(-1.0, 1.0)
NEIGHBOURS = {"record": CONTRIBUTION, "other": optional(CONTRIBUTION)}
OF_LOWER = OF_ALL | {
    "statistic": text(),
    "data": record(NEIGHBOURS | {"filler": CONTRIBUTION}),
}
LOWER_PART = told_by(
    "statistic",
    {
        "sum": record(OF_LOWER),
        "sum of all steps": record(OF_LOWER),
        "largest step": record(OF_LOWER),
        "all steps": record(OF_LOWER | {"sums": SUMS}),
        "step functions": record(OF_LOWER | {"edges": EDGES}),
    },
    "statistic",
)
DIRECTION = text("forward", "backward")
MOST_PARTS = 5000

ATTACK = record({"direction": DIRECTION, "parts": listed(LOWER_PART, MOST_PARTS)})
POLICY = record(
    {
        "direction": DIRECTION,
        "release": PLACE,
        "data": record(NEIGHBOURS | {"filler": text("-1 or 1")}),
        "step": real(1e-30, 1e6),
        "window": tupled(INDEX, INDEX),
        "blocks": listed(tupled(SIZE, SIZE), 10_000),
    }
)
CELLS: dict[str, Shape] = {
    "30": tupled(text("any", "replaced", "second", "first"), real(0.0, 2.0), real(0.0, 2.0)),
    "70": tupled(*[real(0.0, 4.0)] * 2),
    **dict.fromkeys(("15", "22", "65"), tupled(*[real(-2.0, 2.0)] * 4)),
}


def _game_of(theorem: str) -> Shape:
    laws = {"law": law, "backward": law} if theorem == "70" else {"law": law}
    return record(
        {
            "release": PLACE,
            "steps": SIZE,
            "theorem": text(),
            "section": text(),
            "points": SIZE,
            "cells": listed(record({"cell": CELLS[theorem]} | laws), 10_000),
        }
    )


GAME = record({"game": told_by("theorem", {name: _game_of(name) for name in CELLS}, "theorem")})
DOMINATED = record(
    {
        "forward": listed(UPPER_PART, MOST_PARTS),
        "backward": optional(listed(UPPER_PART, MOST_PARTS)),
    },
    {"blocks": listed(BLOCK, 1000)},
)


def upper(value: Any, where: str) -> dict:
    return (GAME if type(value) is dict and "game" in value else DOMINATED)(value, where)


def lower(value: Any, where: str) -> dict:
    return (ATTACK if type(value) is dict and "parts" in value else POLICY)(value, where)


def _end(shape: Shape) -> Shape:
    """Shape of the proof of one bound. If it names what is not known here, the other bound can
    still be proved."""

    def read(value: Any, where: str) -> dict | NotCovered:
        try:
            return shape(value, where)
        except NotCovered as unknown:
            return unknown

    return read


# --- The whole file -------------------------------------------------------------------------------

# An end that claims nothing is null: 0 below, and 1 or infinity above, are not claimed.
CLAIM = record({"lower": optional(real(5e-324)), "upper": optional(real(0.0))})


def certificate(value: Any, where: str) -> dict:
    found = record(
        {
            "dpsub_certificate": whole(SCHEMA, SCHEMA),
            "made_by": text(),
            "question": question,
            "claim": CLAIM,
            "upper": optional(_end(upper)),
            "lower": optional(_end(lower)),
        }
    )(value, where)
    claim = found["claim"]
    if claim["lower"] is None and claim["upper"] is None:
        raise Unreadable("nothing is claimed")
    for end in ("lower", "upper"):
        if claim[end] is not None and found[end] is None:
            raise Unreadable(f"the {end} bound is claimed, and nothing is given that proves it")
    if found["question"]["quantity"] == "delta":
        for end in ("lower", "upper"):
            if claim[end] is not None and not claim[end] < 1:
                raise Unreadable(f"claim, {end}: a delta of 1 says nothing")
    return found
