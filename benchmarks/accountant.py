"""Compare the speed and sharpness of the accountant with those of other accountants on the same
questions.

Seconds are of processor time, so that a busy machine moves the ratios little. Peers are compared at
an equal or larger width of the final answer; ours is always two-sided, dp-accounting's figure is
for its upper bound alone.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import Any

import numpy as np
import peers
from board import Board
from scipy.stats import binom

import dpsub
from dpsub import sampling
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.engine.discretise import upper_pld
from dpsub.accounting.engine.fourier import ComposedLoss
from dpsub.accounting.engine.pairs import FillerPair, PoissonPair
from dpsub.accounting.engine.privacy_events import PairEvent
from dpsub.sampling.laws import MultiplicityLaw

N, B, M, SCALE, STEPS = 10000, 118, 200, 4.0, 1000
COMPONENTS = 22


def accountant(board: Board, *, quick: bool = False) -> None:
    """Make all comparisons; `quick` leaves out the peers that need more than ten seconds."""
    poisson(board)
    mirrored_pair(board, quick=quick)
    one_sided_mixture(board, quick=quick)
    proved(board)
    allocation(board, quick=quick)
    subsets(board)
    cut(board)
    tight(board)
    many(board)
    calibration(board)
    plans(board)
    growth(board)
    start(board)


def poisson(board: Board) -> None:
    """Compare epsilon of Poisson sampling, add or remove one record."""
    for k, sharpness, bound in ((1000, 2e-4, 1.0), (10_000, 2e-3, 1.0)):
        ours, found = board.timed(
            lambda k=k, sharpness=sharpness: dpsub.account(
                sampling.Poisson(0.01), noise_multiplier=1.0, steps=k, delta=1e-5, width=sharpness
            ),
            3,
        )
        theirs, high = board.timed(
            lambda k=k: peers.gaussian_upper(1.0, 0.01).self_compose(k).get_epsilon_for_delta(1e-5),
            3,
        )
        tag = f"Poisson q=.01 s=1 k={k}, epsilon"
        board.width(tag, found.lower, found.upper, at_most=sharpness)
        board.line(tag, ours, f"dp-accounting, upper only, {high:.5f}", theirs, at_most=bound)
    ours, found = board.timed(
        lambda: dpsub.account(
            sampling.Poisson(0.001), noise_multiplier=0.6, steps=10**5, delta=1e-6, width=1e-3
        ),
        3,
    )
    theirs, high = board.timed(
        lambda: peers.gaussian_upper(0.6, 0.001).self_compose(10**5).get_epsilon_for_delta(1e-6), 3
    )
    tag = "Poisson q=.001 s=.6 k=10^5, epsilon"
    board.width(tag, found.lower, found.upper, at_most=1e-3)
    board.line(tag, ours, f"dp-accounting, upper only, {high:.5f}", theirs, at_most=1.0)
    ours, found = board.timed(
        lambda: dpsub.account(
            sampling.Poisson(0.01), noise_multiplier=1.0, steps=10**6, delta=1e-5, width=0.1
        ),
        1,
    )
    board.width(
        f"Poisson q=.01 s=1 k=10^6 in {ours:.1f} s, epsilon", found.lower, found.upper, at_most=0.1
    )


def two_stage_weights(size: int) -> np.ndarray:
    """Law of the number of times that a record is taken by MUST.OW, cut to `size` components."""
    weights = B / N * binom.pmf(np.arange(size), M, 1 / B)
    weights[0] = 1 - weights[1:].sum()
    return np.asarray(weights)


def mirrored_pair(board: Board, *, quick: bool) -> None:
    """Compare delta of the papers' pair of MUST.OW, +l against -l."""
    k, step, error = board.sized((STEPS, peers.STEP, 1e-3), (10, 1e-2, 0.3))
    ours, found = board.timed(
        lambda: dpsub.account(
            sampling.MustOW(B, M),
            N,
            noise_multiplier=SCALE,
            steps=k,
            epsilon=1.0,
            width=2e-3,
            variant="paper",
        ),
        3,
    )
    board.width("pair +-l of MUST.OW, delta", found.lower, found.upper, at_most=2e-3, relative=True)

    def pair() -> peers.MirroredMixture:
        return peers.MirroredMixture(
            np.arange(COMPONENTS + 3), two_stage_weights(COMPONENTS + 3), SCALE
        )

    def connected() -> float:
        dots = peers.self_dual_upper(pair().profile, step, 12.0)
        return float(dots.self_compose(k).get_delta_for_epsilon(1.0))

    theirs, high = board.timed(connected, 2)
    board.line(
        "pair +-l of MUST.OW", ours, f"dp-accounting's dots, {high:.5e}", theirs, at_most=1 / 2
    )
    if quick:
        return
    theirs, (low, high) = board.timed(
        lambda: peers.interval_mixture(pair(), k, 1.0, error, 1e-7, 15.0), 1
    )
    # the law is tabulated for it, which spares it most of the time that a user's own law would take
    board.line(
        "pair +-l of MUST.OW",
        ours,
        f"prv-accountant [{low:.3e}, {high:.3e}]",
        theirs,
        at_most=1 / 40,
    )


def one_sided_mixture(board: Board, *, quick: bool) -> None:
    """Compare delta of the filler pair of MUST.OW, both directions."""
    weights = two_stage_weights(COMPONENTS)
    law = MultiplicityLaw(np.log(weights))
    k, step = board.sized((STEPS, 1e-3 if quick else peers.STEP), (10, 1e-2))

    def ours() -> tuple[float, float]:
        return Composition([(PairEvent(FillerPair(law, SCALE / 2)), k)]).answer(
            Target(epsilon=1.0, width=1e-3)
        )[:2]

    seconds, (low, high) = board.timed(ours, 2)
    board.width("one-sided mixture of 22, delta", low, high, at_most=1e-3, relative=True)
    theirs, upper = board.timed(
        lambda: (
            peers.one_sided_mixture(SCALE / 2, np.arange(COMPONENTS), weights, step)
            .self_compose(k)
            .get_delta_for_epsilon(1.0)
        ),
        1,
    )
    print(f"  dp-accounting at step {step:g}: {upper:.7f}")
    board.line(
        "one-sided mixture of 22", seconds, f"dp-accounting, step {step:g}", theirs, at_most=1 / 10
    )


def proved(board: Board) -> None:
    """Time the proved bounds and attacks of all samplers of fixed size."""
    n, b, m, k = board.sized((N, B, M, STEPS), (500, 20, 10, 10))
    for name, most in (("wor", 1.0), ("wr", 1.0), ("must_ow", 3.0), ("must_ww", 3.0)):
        sampler = sampling.of_sizes(name, n=n, m=m, b=b)
        for asked in ({"epsilon": 1.0}, {"delta": 1e-5}):
            seconds, found = board.timed(
                lambda s=sampler, a=asked: dpsub.account(
                    s, n, noise_multiplier=SCALE, steps=k, quick=True, **a
                )
            )
            tag = f"{name} rigorous, {found.quantity} [{found.lower:.6g}, {found.upper:.6g}]"
            board.verdict(tag, f"{seconds:.2f} s", seconds, most)


def allocation(board: Board, *, quick: bool) -> None:
    """Compare random allocation, 1 of t: seconds and relative widths, next to those of
    PLD_accounting where that is installed."""
    cases = ((100, 1.0, 1, 1e-6, 0.86), (1000, 1.0, 10, 1e-5, 0.46), (10_000, 0.3, 100, 1e-6, 76.0))
    for t, scale, epochs, delta, near in cases:
        asked = {"noise_multiplier": scale, "epochs": epochs, "delta": delta, "width": 4e-3 * near}
        ours, found = board.timed(
            lambda t=t, asked=asked: dpsub.account(sampling.RandomAllocation(t), **asked), 1
        )
        what = f"random allocation, t = {t}, s = {scale:g}, {epochs} epochs"
        board.width(what, found.lower, found.upper, at_most=5e-3, relative=True)
        board.verdict(what, f"{ours:.2f} s", ours, 2.0)
        if importlib.util.find_spec("PLD_accounting") is None or (quick and t > 100):
            continue
        theirs, (low, high) = board.timed(lambda t=t, a=asked: peers.interval_allocation(t, **a), 1)
        board.line(what, ours, f"PLD_accounting [{low:.5g}, {high:.5g}]", theirs, at_most=0.1)


def subsets(board: Board) -> None:
    """Compare random allocation, k of t, with little noise: seconds and relative widths, next to a
    Monte Carlo interval of the same run."""
    for t, k, scale, delta, drawn, closest in (
        (391, 5, 0.8, 1.25e-5, 40_000, 5e-3),
        (391, 5, 0.52, 1.25e-5, 40_000, 5e-3),
        (10_000, 205, 1.4, 1e-5, 0, 5e-3),
        (10_000, 205, 0.8, 1e-5, 0, 6e-3),
    ):
        asked = {"noise_multiplier": scale, "delta": delta, "time_limit": board.sized(None, 1.0)}
        plan = sampling.RandomAllocation(t, k)
        ours, found = board.timed(lambda plan=plan, asked=asked: dpsub.account(plan, **asked), 1)
        what = f"random allocation, {k} of {t}, s = {scale:g}"
        board.width(what, found.lower, found.upper, at_most=closest, relative=True)
        board.verdict(what, f"{ours:.2f} s", ours, 10.0)
        if not drawn:
            continue
        n_drawn = board.sized(drawn, 200)
        theirs, (low, high) = board.timed(
            lambda t=t, k=k, scale=scale, delta=delta, n_drawn=n_drawn: peers.drawn_allocation(
                t, k, scale, delta, n_drawn
            ),
            1,
        )
        # the width of our ends beside that of chance
        share = (found.upper - found.lower) / (high - low) if high > low else float("nan")
        drawn_ends = f"Monte Carlo's [{low:.4g}, {high:.4g}] in {theirs:.1f} s"
        words = f"{share:.2f} of the width of {drawn_ends}"
        board.verdict(what, words, share, 1.0)


def cut(board: Board) -> None:
    """Compare Poisson samples that are cut to a largest size: seconds, and ends next to
    dp-accounting's bound."""
    for n, rate, most, steps, closest in (
        (10_000, 0.01, 150, 1000, 5e-3),
        (1000, 0.05, 50, 10, 0.8),
    ):
        asked = {"noise_multiplier": SCALE, "steps": steps, "delta": 1e-5, "width": 1e-3}
        sampler = sampling.TruncatedPoisson(rate, most)
        ours, found = board.timed(
            lambda sampler=sampler, n=n, asked=asked: dpsub.account(sampler, n, **asked), 3
        )

        def peer(n: int = n, rate: float = rate, most: int = most, steps: int = steps) -> float:
            composed = peers.cut_upper(n + 1, rate, most, SCALE).self_compose(steps)
            return float(composed.get_epsilon_for_delta(1e-5))

        theirs, bound = board.timed(peer, 1)
        what = f"Poisson cut to {most}, n = {n}, s = {SCALE:g}, {steps} steps"
        board.width(what, found.lower, found.upper, at_most=closest, relative=True)
        board.verdict(
            what,
            f"upper end less dp-accounting's {found.upper - bound:.1e}",
            found.upper - bound,
            1e-3,
        )
        board.line(what, ours, f"dp-accounting (upper {bound:.7g})", theirs, at_most=1)


def tight(board: Board) -> None:
    """Measure seconds and relative widths of the game."""
    wor, wr, must_ow = sampling.Wor(M), sampling.Wr(M), sampling.MustOW(500, M)
    cases = (
        ("wor", wor, N, SCALE, 100, 1, 0.01, 10.0),
        ("wor", wor, N, SCALE, STEPS, 1, 0.02, 10.0),
        ("wor", sampling.Wor(500), 50000, 1.0, 10_000, 1, 0.08, 60.0),
        ("wr", wr, N, SCALE, 100, 1, 0.03, 10.0),
        ("wr", wr, N, SCALE, STEPS, 1, 0.03, 10.0),
        ("wr", sampling.Wr(500), 50000, 1.0, 10_000, 10, 0.05, 60.0),
        ("must_ow, b = 500", must_ow, N, SCALE, STEPS, 4, 0.08, 30.0),
    )
    for name, sampler, n, scale, steps, effort, closest, most in cases:
        limit = board.sized(0.8 * most, 0.3)
        asked = {
            "noise_multiplier": scale,
            "steps": steps,
            "delta": 1e-5,
            "effort": effort,
            "time_limit": limit,
        }
        seconds, found = board.timed(
            lambda sampler=sampler, n=n, asked=asked: dpsub.account(sampler, n, **asked), 1
        )
        what = f"{name} tight, n = {n}, s = {scale:g}, {steps} steps, effort {effort}"
        board.width(what, found.lower, found.upper, at_most=closest, relative=True)
        board.verdict(what, f"{seconds:.2f} s", seconds, most)


def many(board: Board) -> None:
    """Compare a hundred deltas at once with one of them."""
    deltas = np.geomspace(1e-8, 1e-3, 100)
    cases = (
        ("poisson", sampling.Poisson(0.01), None, 1.0),
        ("wor", sampling.Wor(M), N, SCALE),
        ("must_ow", sampling.MustOW(B, M), N, SCALE),
    )
    for name, sampler, n, scale in cases:
        asked: dict[str, Any] = {
            "noise_multiplier": scale,
            "steps": board.sized(STEPS, 10),
            "time_limit": None,
            "quick": True,
        }
        once, _ = board.timed(
            lambda s=sampler, n=n, asked=asked: dpsub.account(s, n, delta=1e-5, **asked), 3
        )
        ours, _ = board.timed(
            lambda s=sampler, n=n, asked=asked: dpsub.account(s, n, delta=deltas, **asked), 3
        )
        board.line(f"{name}, 100 deltas of one composition", ours, "one delta", once, at_most=2)


def calibration(board: Board) -> None:
    """Compare the search for the noise of a target with one accounting."""
    n, b, m, k, accuracy = board.sized((N, B, M, STEPS, 1e-3), (500, 20, 10, 10, 0.2))
    cases = (
        ("poisson", sampling.Poisson(0.02), 2.0),
        ("wor", sampling.Wor(m), 2.0),
        ("must_ow", sampling.MustOW(b, m), 8.0),
        ("must_ww", sampling.MustWW(b, m), 8.0),
    )
    for name, sampler, target in cases:
        whole, found = board.timed(
            lambda s=sampler, t=target: dpsub.calibrate(
                s, n, steps=k, epsilon=t, delta=1e-5, accuracy=accuracy, quick=True
            ),
            1,
        )
        once, _ = board.timed(
            lambda s=sampler, noise=found.noise_multiplier, t=target: dpsub.account(
                s, n, noise_multiplier=noise, steps=k, delta=1e-5, width=t * accuracy, quick=True
            ),
            3,
        )
        board.line(
            f"calibrate {name}, quick: s = {found.noise_multiplier:.5f}",
            whole,
            "one accounting",
            once,
            at_most=10,
        )


def plans(board: Board) -> None:
    """Time the questions asked before a training: its shuffled epochs, noise for them, and all
    schemes; next to dp-accounting's noise for Poisson samples of the same sizes. Curves at much
    noise, next to those at little."""
    n, m, epochs, accuracy = board.sized((60_000, 600, 10, 1e-3), (100, 10, 1, 0.2))
    target = {"epsilon": 2.0, "delta": 1e-5}
    theirs, noise = board.timed(lambda: peers.poisson_noise(m / n, n // m * epochs, **target), 1)
    peer = f"dp-accounting, noise of Poisson {noise:.4f}"
    asked = {"delta": 1e-5, "epochs": epochs, "adjacency": "zero_out"}
    for scale in (2.0, 4.0):
        ours, found = board.timed(
            lambda scale=scale: dpsub.account(
                sampling.Shuffle(m), n, noise_multiplier=scale, time_limit=None, **asked
            )
        )
        what = f"shuffle, s = {scale:g} [{found.lower:.6g}, {found.upper:.6g}]"
        board.line(what, ours, peer, theirs, at_most=0.5)
    ours, proved = board.timed(
        lambda: dpsub.calibrate(
            sampling.Shuffle(m), n, **target, epochs=epochs, adjacency="zero_out", accuracy=accuracy
        )
    )
    what = f"calibrate shuffle, zero_out: s = {proved.noise_multiplier:.5f}"
    board.line(what, ours, peer, theirs, at_most=2.0)
    ours, answer = board.timed(
        lambda: dpsub.recommend(
            n, batch_size=m, epochs=epochs, **target, time_limit=None, quick=True
        )
    )
    what = f"recommend, {len(answer.schemes)} schemes of {n} records"
    board.line(what, ours, peer, theirs, at_most=3.0)
    for name, sampler, size in (
        ("poisson", sampling.Poisson(0.01), None),
        ("wor", sampling.Wor(m), n),
    ):
        loud, quiet = (
            board.timed(
                lambda s=sampler, size=size, noise=noise: dpsub.curve(
                    s, size, noise_multiplier=noise, steps=board.sized(STEPS, 10), quick=True
                )
            )[0]
            for noise in (1e9, 4.0)
        )
        board.line(f"curve {name}, s = 1e9", loud, "the same, s = 4", quiet, at_most=5.0)


def growth(board: Board) -> None:
    """Measure the cost against the number of grid points, and against k on a grid of the same size.

    All grids take turns, so that what else the machine does falls on all of them, and the best of
    several turns counts. Only the time of the program itself is taken: what the system needs to
    hand out memory depends on the machine, in a virtual one it can be as much again and grows in
    jumps.
    """
    pair = PoissonPair(0.01, 1.0)
    grids = (
        (8e-5, STEPS),
        (4e-5, STEPS),
        (2e-5, STEPS),
        (1e-5, STEPS),
        (5e-6, STEPS),
        (2e-4, 10**6),
    )
    points, seconds = [], [float("inf")] * len(grids)
    for step, k in grids:
        law = upper_pld(pair, step, tail=1e-18)
        low, high = ComposedLoss([law], [k]).cumulants.reach(0.0, -30.0)
        points.append(law.masses.size + (high - low) / step)
    # the clock of the program ticks in hundredths of a second
    repeats = [max(1, round(board.sized(2e6, 4e5) / size)) for size in points]
    for _ in range(board.sized(5, 1)):
        for place, (step, k) in enumerate(grids):
            begin = os.times().user
            for _ in range(repeats[place]):
                ComposedLoss([upper_pld(pair, step, tail=1e-18)], [k]).epsilon(1e-5)
            once = (os.times().user - begin) / repeats[place]
            seconds[place] = min(seconds[place], once)
    costs = [cost / size for cost, size in zip(seconds, points, strict=True)]
    exponent = float(np.polyfit(np.log(points[:-1]), np.log(costs[:-1]), 1)[0])
    words = f"a point costs {4**exponent:.3f} times as much for 4 times the points"
    board.verdict(
        f"{points[0]:.0f} to {points[-2]:.0f} grid points, fitted", words, 4**exponent, 1.5
    )
    board.line(
        f"k = 10^6, {points[-1]:.0f} points",
        costs[-1],
        f"k = {STEPS}, {points[3]:.0f} points",
        costs[3],
        at_most=1.5,
    )


def start(board: Board) -> None:
    """Time the start, from nothing to an answer, on the command line."""
    wor = ["--n", str(N), "--m", str(M), "--noise-multiplier", str(SCALE)]
    asked = (
        ("poisson", ["--rate", ".01", "--noise-multiplier", "1"], 1.0),
        ("wor", [*wor, "--quick"], 1.0),
        # refined within the default budget of work
        ("wor", wor, 4.0),
    )
    for name, options, most in asked:
        command = [
            sys.executable,
            "-m",
            "dpsub",
            "account",
            name,
            *options,
            "--steps",
            str(STEPS),
            "--delta",
            "1e-5",
        ]
        times = []
        for _ in range(board.sized(5, 1)):
            before = os.times()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            after = os.times()
            times.append(
                after.children_user
                + after.children_system
                - before.children_user
                - before.children_system
            )
        board.verdict(
            f"dpsub account {name}, k = {STEPS}, {'quick, ' * ('--quick' in options)}"
            "in a fresh process",
            f"{min(times):.2f} s",
            min(times),
            most,
        )
