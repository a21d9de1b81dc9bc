"""Ask practical questions, of this package and of the others that can answer them.

Ours is asked for the width of each peer's answer, so that the seconds of one line are those of
answers that are equally sharp, or ours sharper. Where a peer gives an upper bound alone, its width
is the distance from our attack.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import peers
from board import Board

import dpsub

DELTA = 1e-5
Interval = tuple[float, float]


@dataclass(frozen=True)
class Peer:
    """A package and how it is asked; its answer has NaN for an end that it does not give."""

    package: str
    ask: Callable[[], Interval]


@dataclass(frozen=True)
class Question:
    """A question: how this package is asked for an answer of some width, and its peers."""

    name: str
    ask: Callable[[float | None], dpsub.Account]
    peers: tuple[Peer, ...]


def questions(board: Board) -> None:
    """Time all questions, each with the peers that are installed."""
    for question in asked(board):
        known = question.ask(None)
        for peer in question.peers:
            if importlib.util.find_spec(peer.package) is None:
                print(f"  {question.name}: {peer.package} is not installed", flush=True)
                continue
            theirs, (low, high) = board.timed(peer.ask)
            low = float(known.lower) if math.isnan(low) else low
            width = max(high - low, 0.0)
            ours, found = board.timed(
                lambda ask=question.ask, width=width: ask(width or None), repeats=2
            )
            ends = f"{peer.package} [{low:.5g}, {high:.5g}]"
            board.line(question.name, ours, ends, theirs, at_most=1.0)
            board.width(question.name, found.lower, found.upper, at_most=width)


def asked(board: Board) -> Iterator[Question]:
    """Return the questions: a training of thirty epochs, its batches drawn in several ways."""
    n, m, epochs, noise = board.sized((50_000, 512, 30, 1.0), (1000, 50, 1, 2.0))
    rate, steps = m / n, epochs * n // m
    sampled = {"noise_multiplier": noise, "steps": steps, "delta": DELTA}

    for relation, replace in (("add_remove", False), ("substitute", True)):
        losses = Peer(
            "dp_accounting",
            lambda replace=replace: peers.ends_of([(noise, rate, steps)], DELTA, replace=replace),
        )
        prv = Peer(
            "prv_accountant", lambda: peers.interval_poisson(rate, noise, steps, DELTA, 0.01)
        )
        yield Question(
            f"Poisson, {epochs} epochs, {relation}",
            lambda width, relation=relation: dpsub.account(
                dpsub.Poisson(rate), adjacency=relation, width=width, **sampled
            ),
            (losses,) if replace else (losses, prv),
        )

    yield Question(
        f"WOR, {epochs} epochs, substitute",
        lambda width: dpsub.account(dpsub.Wor(m), n, width=width, **sampled),
        (
            Peer(
                "dp_accounting", lambda: peers.upper_without_replacement(n, m, noise, steps, DELTA)
            ),
        ),
    )

    # a record is in one step of each epoch, and all know which
    yield Question(
        f"deterministic batches, {epochs} epochs",
        lambda width: dpsub.account(
            dpsub.Deterministic(m),
            n,
            noise_multiplier=noise,
            epochs=epochs,
            delta=DELTA,
            adjacency="zero_out",
            width=width,
        ),
        (Peer("dp_accounting", lambda: peers.ends_of([(noise, 1.0, epochs)], DELTA)),),
    )

    for k, times in ((1, 10), (4, 1)):
        t = board.sized(100, 20)
        bounds = Peer(
            "random_allocation",
            lambda k=k, times=times, t=t: peers.upper_allocation(t, k, 2.0, times, DELTA),
        )
        yield Question(
            f"random allocation, {k} of {t}, {times} epochs",
            lambda width, k=k, times=times, t=t: dpsub.account(
                dpsub.RandomAllocation(t, k),
                noise_multiplier=2.0,
                epochs=times,
                delta=DELTA,
                width=width,
            ),
            (bounds,),
        )

    # noise that decays, a step of a ledger each
    levels = np.linspace(2.0, 1.0, board.sized(20, 2)).tolist()
    each = max(1, steps // len(levels))
    ledger = dpsub.Ledger([dpsub.Release(dpsub.Poisson(rate), None, s, each) for s in levels])
    yield Question(
        f"Poisson, {len(levels)} noise levels",
        lambda width: ledger.account(delta=DELTA, width=width),
        (Peer("dp_accounting", lambda: peers.ends_of([(s, rate, each) for s in levels], DELTA)),),
    )
