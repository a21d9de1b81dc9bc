"""From the per-query privacy that a paper fixes to the scale of the noise that it adds."""

from __future__ import annotations

from dataclasses import dataclass

from dpsub import checks, profiles
from dpsub.amplification import amplify, base_epsilon
from dpsub.calibration import analytic_gaussian_scale, classical_gaussian_scale
from dpsub.multiplicity import MultiplicityLaw


@dataclass(frozen=True)
class NoisePlan:
    """The Gaussian noise of one subsampled query.

    Attributes
    ----------
    eta : inclusion probability of the sampler.
    epsilon, delta : (ε, δ) of the base mechanism, nats and probability.
    sensitivity : L2 sensitivity that the noise is scaled to.
    sigma : standard deviation of the noise.
    delta_amplified : δ' of the subsampled query.
    """

    eta: float
    epsilon: float
    delta: float
    sensitivity: float
    sigma: float
    delta_amplified: float


def plan_noise(
    law: MultiplicityLaw,
    *,
    epsilon_amplified: float,
    delta: float,
    sensitivity: float,
    calibration: str,
    group_sensitivity: float | None = None,
    nominal_delta: bool = False,
) -> NoisePlan:
    """Back-calculate the base ε from ε', calibrate the noise, and account for multiple copies in δ'.

    Parameters
    ----------
    law : MultiplicityLaw
        Of the sampler.
    epsilon_amplified, delta : float
        ε' > 0 after sampling (nats), and δ in (0, 1) of the base mechanism.
    sensitivity : float
        L2 sensitivity that the noise is scaled to, > 0.
    calibration : {"classical", "analytic"}
        Equation 9 of MUST, or the smallest scale whose exact profile meets (ε, δ).
    group_sensitivity : float, optional
        The sensitivity in the group profile δ_l, where it differs from `sensitivity` (MUST, Table 6: see erratum E3).
    nominal_delta : bool
        Report η δ with the nominal δ, as MUST does for samplers that take a record at most once (erratum E5), instead
        of the exact profile at the calibrated scale.

    Raises
    ------
    ArgumentError
        If an argument breaks its range.

    References
    ----------
    MUST, Equation 9, Theorem 5, Algorithm 2 steps 1 and 2.
    """
    checks.one_of("calibration", calibration, ("classical", "analytic"))
    target = checks.real("epsilon_amplified", epsilon_amplified, above=0)
    group = sensitivity if group_sensitivity is None else checks.real("group_sensitivity", group_sensitivity, above=0)
    eta = law.eta
    epsilon = float(base_epsilon(target, eta))
    scale = classical_gaussian_scale if calibration == "classical" else analytic_gaussian_scale
    sigma = float(scale(epsilon, delta, sensitivity))
    if nominal_delta:
        delta_amplified = eta * delta
    else:
        profile = profiles.of("gaussian", group / sigma)
        delta_amplified = float(amplify(law, profile, epsilon).delta_amplified)
    return NoisePlan(eta, epsilon, delta, sensitivity, sigma, delta_amplified)
