"""The least noise that is proved to meet a target (epsilon, delta), and the noise that an attack refutes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from dpsub import checks
from dpsub.accountants.account import Account
from dpsub.accountants.gaussian_pair import MIN_SCALE
from dpsub.accountants.noise_search import smallest_noise
from dpsub.accountants.refinement import Question
from dpsub.accounting import Proof, Release
from dpsub.calibration import analytic_gaussian_scale
from dpsub.errors import UnsupportedError
from dpsub.samplers.base import Sampler

MOST_NOISE = 1e4
_GUESS, _ROUGH = 0.5, 0.15
_STEPS_DOWN = 6


@dataclass(frozen=True)
class NoiseCalibration:
    """A safe noise multiplier and what is known below it.

    Attributes
    ----------
    noise_multiplier : float
        Proved: the upper bound of epsilon at this noise is at most the target.
    necessary : float
        Refuted: with this noise multiplier or less an attack exceeds the target; 0 if no attack is known.
    evaluations : int
        How many upper bounds of full accuracy were computed.
    account : Account
        Bounds of epsilon at `noise_multiplier` and the target delta.
    """

    noise_multiplier: float
    necessary: float
    evaluations: int
    account: Account


def calibrate_noise(
    sampler: Sampler,
    n: int | None = None,
    *,
    n_compositions: int,
    target_epsilon: float,
    target_delta: float,
    adjacency: str | None = None,
    mechanism: str = "gaussian",
    accuracy: float = 1e-3,
) -> NoiseCalibration:
    """Find a noise multiplier for which the releases are proved (target_epsilon, target_delta)-DP.

    Bounds on single coarse grids say where to look; what is returned was computed to full accuracy.

    Parameters
    ----------
    sampler, n, n_compositions, mechanism, adjacency
        As in `dpsub.accounting.rigorous`.
    target_epsilon : float
        Nats, above 0.
    target_delta : float
        In (0, 1).
    accuracy : float
        Relative distance between the answer and a smaller multiplier that is not proved.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    UnsupportedError
        If no bound covers the case, or no multiplier up to 1e4 meets the target.

    Examples
    --------
    >>> from dpsub.samplers import Poisson
    >>> target = {"n_compositions": 100, "target_epsilon": 1.0, "target_delta": 1e-5}
    >>> found = calibrate_noise(Poisson(0.01), accuracy=0.01, **target)
    >>> found.account.upper <= 1.0                  # proved at this noise
    True
    >>> found.necessary < found.noise_multiplier    # refuted at this and less
    True
    >>> 0.85 < found.noise_multiplier < 0.95
    True
    """
    target = checks.real("target_epsilon", target_epsilon, above=0)
    closeness = checks.real("accuracy", accuracy, above=0, below=1)
    question = Question(delta=target_delta, width=max(target * closeness, 1e-9))
    accounts: dict[float, Account] = {}

    @cache
    def at(noise: float) -> Proof:
        return Proof.of([Release(sampler, n, noise, n_compositions, mechanism)], adjacency)

    def bound(noise: float) -> float:
        accounts[noise] = at(noise).upper(question)
        return accounts[noise].upper

    def rough(noise: float) -> float:
        return at(noise).ledger.rough(question, "upper", at(noise).ledger.spread / 4)

    limits = {"least": MIN_SCALE, "most": MOST_NOISE}
    # where all losses were Gaussian, only their variance would matter
    spread = 1 / analytic_gaussian_scale(target, target_delta, math.sqrt(n_compositions))
    start, steepness = 1.0, 1.0
    searches: tuple[tuple[Callable[[float], float], float, float], ...] = (
        (lambda noise: at(noise).ledger.spread, spread, _GUESS),
        (rough, target, _ROUGH),
    )
    for measure, goal, rough_accuracy in searches:
        try:
            near = smallest_noise(measure, goal, start=start, accuracy=rough_accuracy, steepness=steepness, **limits)
        except UnsupportedError:
            # what is rough may miss by little what is proved: that is asked last, and gives the reason
            start = MOST_NOISE
        else:
            start, steepness = near.root, near.steepness
    found = smallest_noise(bound, target, start=start, accuracy=closeness, steepness=steepness, **limits)
    proof = at(found.safe)
    exact = proof.ledger.one_number
    account = accounts[found.safe] if exact else proof.account(question)

    def attack(noise: float) -> float:
        return at(noise).ledger.rough(question, "lower", proof.ledger.spread / 24)

    necessary = 0.0
    if found.unsafe > 0 and exact:
        # both ends bracket one number: the attack succeeds where the proof fails, or a little below
        reached = accounts[found.unsafe].lower > target
        tried = (found.unsafe * (1 - closeness * 2**i) for i in range(_STEPS_DOWN) if closeness * 2**i < 1)
        necessary = found.unsafe if reached else next((noise for noise in tried if attack(noise) > target), 0.0)
    elif found.unsafe > 0 and proof.ledger.attacked:
        below = found.unsafe * (1 - closeness)
        necessary = smallest_noise(
            attack, target, start=below, accuracy=closeness, steepness=found.steepness, **limits
        ).unsafe
    return NoiseCalibration(found.safe, necessary, found.evaluations, account)
