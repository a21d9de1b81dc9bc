"""How commands show an account: kind, guarantee, adjacency, sensitivity, conditions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dpsub.cli.answers import Line, down, near, up

if TYPE_CHECKING:
    from dpsub.accounting.account import Account

KINDS = {"exact": "exact", "bounds": "bounds", "upper": "bounds", "paper": "pair"}
"""Kinds of accounts, as the command line calls them; a proof without an attack is bounds whose lower end is 0."""

_MEANING = {
    "exact": "both ends bracket one number, which the worst data sets attain",
    "bounds": "the upper end is proved; an attack attains the lower end, below which nothing can be guaranteed",
    "pair": "both ends bracket what the papers' pair of densities gives",
}


def values(account: Account, seconds: float) -> dict[str, Any]:
    """The account as JSON has it."""
    kind = KINDS[account.kind]
    pair = account.pair
    if kind == "bounds":
        pair = f"upper: {account.pair}; lower: {account.lower_pair or 'none known'}"
    return {
        "quantity": account.quantity,
        "lower": account.lower,
        "upper": account.upper,
        "kind": kind,
        "guarantee": guaranteed(account),
        "pair": pair,
        "adjacency": account.adjacency,
        "sensitivity": account.sensitivity,
        "conditions": list(account.conditions),
        "seconds": round(seconds, 3),
    }


def guaranteed(account: Account) -> bool:
    """Whether the upper end is proved for the sampler."""
    return KINDS[account.kind] != "pair"


def lines(account: Account, given: float, seconds: float) -> list[Line]:
    """The account for people; `given` is the epsilon or delta that was asked about."""
    kind = KINDS[account.kind]
    proved = "" if kind == "pair" else "  (proved)"
    below = "" if account.lower_pair else "  (trivial: no attack is known)"
    found: list[Line] = [
        (f"{account.quantity}, upper", up(account.upper) + proved),
        (f"{account.quantity}, lower", down(account.lower) + below),
        ("kind", f"{kind}: {_MEANING[kind]}"),
        ("guarantee", _guarantee(account, given)),
        ("adjacency", account.adjacency),
        ("sensitivity", account.sensitivity),
    ]
    if kind == "bounds":
        found.append(("pair, upper", account.pair))
        if account.lower_pair:
            found.append(("pair, lower", account.lower_pair))
    else:
        found.append(("pair", account.pair))
    if not account.width_met:
        found.append(("accuracy", "looser than asked for: numerical limits stopped the refinement; both ends hold"))
    found.append(("conditions", account.conditions or "none are met by a computation that proves nothing"))
    found.append(("seconds", f"{seconds:.2f}"))
    return found


def _guarantee(account: Account, given: float) -> str:
    if not guaranteed(account):
        return "NO: this reproduces a published computation, which bounds neither the worst data sets nor adaptive ones"
    asked_delta = account.quantity == "delta"
    if not math.isfinite(account.upper) or (asked_delta and account.upper >= 1):
        return "yes, but void: every mechanism meets it"
    first, second = (near(given), up(account.upper)) if asked_delta else (up(account.upper), near(given))
    return f"yes: ({first}, {second})-differential privacy under {account.adjacency}, if the conditions hold"
