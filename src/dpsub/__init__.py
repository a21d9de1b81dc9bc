"""dpsub: what does a sampling scheme really buy in differential privacy?

`account` bounds the privacy of many releases from samples, `check` judges somebody's claim,
`calibrate` finds the noise for a target, `audit` plays the attack, `amplify`, `law` and `translate`
state theorems. Nothing is loaded before it is used.

>>> import dpsub
>>> question = {"noise_multiplier": 4, "steps": 1000, "delta": 1e-5, "adjacency": "substitute"}
>>> found = dpsub.account(dpsub.Wor(200), n=10_000, **question)
>>> found.kind, 1.33 < found.lower < found.upper < 1.54
('bounds', True)
"""

from __future__ import annotations

# as type checkers know it; to import `typing` would take longer than all else here
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dpsub.accounting.engine.own_mechanism import OwnMechanism, pair
    from dpsub.accounting.questions.account import Account
    from dpsub.accounting.questions.amplify import amplify, law
    from dpsub.accounting.questions.audit import audit
    from dpsub.accounting.questions.check import Check, check
    from dpsub.accounting.questions.curve import Curve, curve
    from dpsub.accounting.questions.events import ledger_of
    from dpsub.accounting.questions.filter import Filter
    from dpsub.accounting.questions.ledger import Ledger
    from dpsub.accounting.questions.loader import LoaderRun, from_loader
    from dpsub.accounting.questions.question import account
    from dpsub.accounting.questions.recommend import recommend
    from dpsub.accounting.questions.search import calibrate
    from dpsub.accounting.questions.selection import select
    from dpsub.accounting.release import Release
    from dpsub.amplification.bounds import translate
    from dpsub.errors import (
        ArgumentError,
        DataError,
        DpsubError,
        NumericalError,
        PlanError,
        UnsupportedError,
    )
    from dpsub.noise.banded import BandedStrategy
    from dpsub.sampling.base import PoissonStage, WithoutReplacement, WithReplacement
    from dpsub.sampling.chains import Multistage, MustOO, MustOW, MustWO, MustWW, Poisson, Wor, Wr
    from dpsub.sampling.persistent_shuffle import PersistentShuffle
    from dpsub.sampling.schedules import (
        CyclicPoisson,
        Deterministic,
        RandomAllocation,
        Shuffle,
        TruncatedPoisson,
    )
    from dpsub.sampling.secret_cyclic_poisson import SecretCyclicPoisson
    from dpsub.sampling.separated import MinSeparation
    from dpsub.sampling.weighted import WeightedWr

__version__ = "0.2.0"

_HOMES = {
    "accounting.questions.account": ("Account",),
    "accounting.questions.question": ("account",),
    "accounting.questions.amplify": ("amplify", "law"),
    "accounting.questions.audit": ("audit",),
    "accounting.questions.check": ("Check", "check"),
    "accounting.questions.events": ("ledger_of",),
    "accounting.questions.filter": ("Filter",),
    "accounting.questions.curve": ("Curve", "curve"),
    "accounting.questions.ledger": ("Ledger",),
    "accounting.questions.loader": ("LoaderRun", "from_loader"),
    "accounting.engine.own_mechanism": ("OwnMechanism", "pair"),
    "accounting.questions.recommend": ("recommend",),
    "accounting.release": ("Release",),
    "accounting.questions.search": ("calibrate",),
    "accounting.questions.selection": ("select",),
    "amplification.bounds": ("translate",),
    "noise.banded": ("BandedStrategy",),
    "errors": (
        "ArgumentError",
        "DataError",
        "DpsubError",
        "NumericalError",
        "PlanError",
        "UnsupportedError",
    ),
    "sampling.base": ("PoissonStage", "WithReplacement", "WithoutReplacement"),
    "sampling": (
        "CyclicPoisson",
        "Deterministic",
        "MinSeparation",
        "Multistage",
        "MustOO",
        "MustOW",
        "MustWO",
        "MustWW",
        "PersistentShuffle",
        "Poisson",
        "RandomAllocation",
        "SecretCyclicPoisson",
        "Shuffle",
        "TruncatedPoisson",
        "WeightedWr",
        "Wor",
        "Wr",
    ),
}
_APART = {"OpacusAccountant": "dpsub.opacus", "EventAccountant": "dpsub.dp_accounting"}
"""Accountants for other libraries, each in a module of its own."""
_HOME = {name: f"dpsub.{module}" for module, names in _HOMES.items() for name in names}

__all__ = [
    "Account",
    "ArgumentError",
    "BandedStrategy",
    "Check",
    "Curve",
    "CyclicPoisson",
    "DataError",
    "Deterministic",
    "DpsubError",
    "Filter",
    "Ledger",
    "LoaderRun",
    "MinSeparation",
    "Multistage",
    "MustOO",
    "MustOW",
    "MustWO",
    "MustWW",
    "NumericalError",
    "OwnMechanism",
    "PersistentShuffle",
    "PlanError",
    "Poisson",
    "PoissonStage",
    "RandomAllocation",
    "Release",
    "SecretCyclicPoisson",
    "Shuffle",
    "TruncatedPoisson",
    "UnsupportedError",
    "WeightedWr",
    "WithReplacement",
    "WithoutReplacement",
    "Wor",
    "Wr",
    "account",
    "amplify",
    "audit",
    "calibrate",
    "check",
    "curve",
    "from_loader",
    "law",
    "ledger_of",
    "pair",
    "recommend",
    "select",
    "translate",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        near = [f"; did you mean {known!r}?" for known in _HOME if known.lower() == name.lower()]
        if name in _APART:
            near = [f"; it is {_APART[name]}.{name}, of a module to import"]
        raise AttributeError(f"module 'dpsub' has no attribute {name!r}{''.join(near)}")
    from importlib import import_module

    attribute = globals()[name] = getattr(import_module(_HOME[name]), name)
    return attribute


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
