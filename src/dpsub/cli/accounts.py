"""How commands show an account: kind, guarantee, adjacency, sensitivity, conditions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dpsub.cli.answers import Line, down, near, up

if TYPE_CHECKING:
    from dpsub.accounting.account import Account

_MEANING = {
    "exact": "both ends bracket one number, which the worst data sets attain",
    "bounds": "the upper end is proved; an attack attains the lower end, below which nothing can be guaranteed",
    "upper": "the upper end is proved; no attack is known, so the lower end is the trivial one",
    "lower": "an attack attains the lower end; nothing is proved, so the upper end is the trivial one",
    "paper": "both ends bracket what the papers' pair of densities gives",
}


def values(account: Account, seconds: float) -> dict[str, Any]:
    """The account as JSON has it."""
    both = account.kind in ("bounds", "upper")
    return {
        "quantity": account.quantity,
        "lower": account.lower,
        "upper": account.upper,
        "kind": account.kind,
        "guarantee": guaranteed(account),
        "pair": f"upper: {account.pair}; lower: {account.lower_pair or 'none known'}" if both else account.pair,
        "adjacency": account.adjacency,
        "sensitivity": account.sensitivity,
        "conditions": list(account.conditions),
        "seconds": round(seconds, 3),
    }


def guaranteed(account: Account) -> bool:
    """Whether the upper end is proved for the sampler."""
    return account.kind not in ("paper", "lower")


def lines(account: Account, given: float, seconds: float) -> list[Line]:
    """The account for people; `given` is the epsilon or delta that was asked about."""
    upper, lower = ends(account)
    return [
        (f"{account.quantity}, upper", upper),
        (f"{account.quantity}, lower", lower),
        *facts(account, guarantee(account, given), seconds),
    ]


def ends(account: Account) -> tuple[str, str]:
    """Upper and lower end, each with what it is worth."""
    proved = "  (proved)" if guaranteed(account) else ""
    return up(account.upper) + proved, down(account.lower) + ("" if account.lower_pair else "  (trivial)")


def facts(account: Account, guarantees: str | list[str], seconds: float) -> list[Line]:
    """What holds of an account whatever its numbers."""
    found: list[Line] = [
        ("kind", f"{account.kind}: {_MEANING[account.kind]}"),
        ("guarantee", guarantees),
        ("adjacency", account.adjacency),
        ("sensitivity", account.sensitivity),
    ]
    if account.kind in ("bounds", "upper"):
        found.append(("pair, upper", account.pair))
        if account.lower_pair:
            found.append(("pair, lower", account.lower_pair))
    else:
        found.append(("pair", account.pair))
    if not account.width_met:
        found.append(("accuracy", "looser than asked for: the refinement stopped before; both ends hold"))
    found.append(("conditions", account.conditions or "none are met by a computation that proves nothing"))
    found.append(("seconds", f"{seconds:.2f}"))
    return found


def guarantee(account: Account, given: float) -> str:
    """The promise in words."""
    if not guaranteed(account):
        return "NO: this reproduces a published computation, which bounds neither the worst data sets nor adaptive ones"
    asked_delta = account.quantity == "delta"
    if not math.isfinite(account.upper) or (asked_delta and account.upper >= 1):
        return "yes, but void: every mechanism meets it"
    first, second = (near(given), up(account.upper)) if asked_delta else (up(account.upper), near(given))
    return f"yes: ({first}, {second})-differential privacy under {account.adjacency}, if the conditions hold"
