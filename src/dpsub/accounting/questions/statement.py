"""Statements: the sentence and the table of an answer for a paper, a model card or a registry of
deployments.

Fields have the names of the Differential Privacy Deployments Registry (registry.opendp.org), where
it has them, too.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from dpsub import checks
from dpsub.accounting.questions.account import Account, joined
from dpsub.accounting.questions.curve import FALSE_POSITIVES, curve_of
from dpsub.accounting.questions.question import Question
from dpsub.accounting.questions.words import (
    Statement,
    delta_of_one_record,
    down,
    guesses_text,
    membership_text,
    near,
    percent,
    up,
    user_of,
    without_attack,
)
from dpsub.accounting.release import Release, described
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.noise import GaussianProfile
from dpsub.relations import Relation

_SPELLED = 2  # kinds of releases that a sentence can hold
_POINTS = 16  # epsilons of the curve from which a trade-off is taken
_EFFORT = 1.0  # for that curve
_AS_CLOSE = 1.1  # epsilon of a mu that is stated, over that of the guarantee, at most
_NEIGHBOURS = {
    Relation.ADD_REMOVE: "one has {unit} more",
    Relation.SUBSTITUTE: "they have the same size and differ in {unit}",
    Relation.ZERO_OUT: "they have the same size and differ in {unit}, which contributes 0 in one",
}
_CHANGES = {
    Relation.ADD_REMOVE: "addition or removal of {unit}",
    Relation.SUBSTITUTE: "substitution of {unit}",
    Relation.ZERO_OUT: "zeroing-out of {unit}",
}
_NOISE = {"gaussian": "Gaussian noise of standard deviation", "laplace": "Laplace noise of scale"}


def statement_of(
    account: Account,
    clip: float | str = "C",
    verdict: str = "",
    selected: str = "",
    prior: float | None = None,
) -> Statement:
    """Return the statement of one proved answer.

    Parameters
    ----------
    account : Account
    clip : float or str
        The norm to which each vector was clipped.
    verdict : str
        The verdict on a claim, in words.
    selected : str
        Of how many runs the released one is the best, in words; the releases are one run's.
    prior : float, optional
        Probability of the most likely guess of a secret value, for `Curve.reconstruction`.

    Raises
    ------
    ArgumentError
        If the answer has several values, or guarantees nothing; or if a prior is given for the best
        of several runs.
    """
    if prior is not None:
        prior = checks.real("prior", prior, above=0, below=1)
        if selected:
            raise ArgumentError(
                f"the guesses of a secret value are bounded for one run, got prior = {prior:g} for "
                f"the best of {selected}; drop it, or ask about one run"
            )
    asked = account.asked
    if asked is None or len(asked.values) != 1:
        raise ArgumentError(
            "a statement needs the answer to one question, got several values, or none that is "
            "known; ask for one epsilon or delta"
        )
    ceiling = math.inf if account.quantity == "epsilon" else 1.0
    if account.kind in ("paper", "lower") or not account.upper < ceiling:
        raise ArgumentError(
            f"a statement needs a proved upper bound, got kind {account.kind} and upper "
            f"{account.upper:g}; {_way_out(account)}"
        )
    norm = clip if isinstance(clip, str) else near(checks.real("clip", clip, above=0))
    releases, [given] = asked.releases, asked.values
    is_epsilon = account.quantity == "epsilon"
    epsilon, delta = (account.upper, given) if is_epsilon else (given, account.upper)
    fields: dict[str, Any] = {
        "dp_flavor": "Approximate DP",
        "privacy_unit": _level(releases),
        "privacy_unit_description": (
            "data sets are adjacent if "
            + _NEIGHBOURS[account.adjacency].format(unit=_unit(releases))
        )
        if isinstance(releases[0].group, int)
        else (
            "data sets are adjacent if one has up to {} records of one unit that the other lacks, "
            "and lacks up to {} others of it".format(*releases[0].group)
        ),
        "input_metric": str(account.adjacency),
        # the one that was asked for is as it was asked
        "epsilon": float(up(epsilon)) if is_epsilon else epsilon,
        "delta": delta if is_epsilon else float(up(delta)),
        f"{account.quantity}_lower": float(down(account.lower)),
        "width": percent(account.relative_width),
        "kind": account.kind,
        "mechanisms": joined(_mechanism(release, clip, norm) for release in releases),
        "theorem": account.theorem,
        "lower_theorem": account.lower_theorem,
        "width_reason": account.width_reason,
        "sampler": joined(described(release.sampler, release.n) for release in releases),
        "selection": f"the best of {selected} is released" if selected else "",
        "steps": _single([release.steps for release in releases]),
        "noise_multiplier": _single([release.noise_multiplier for release in releases]),
        "clipping_norm": norm,
        "composition": "adaptive, by privacy loss distributions and attacks on all steps together",
        "conditions": "; ".join(account.conditions),
        "remark": "; ".join(delta_of_one_record(delta, releases)),
        # the curve of one run is not that of the best of several
        **({} if selected else _trade_off(account, releases, (epsilon, delta), prior)),
        "made_by": f"dpsub {version('dpsub')}",
    }
    if (digest := certificate_digest(account)) is not None:
        fields["certificate_sha256"] = digest
    guarantee = f"({fields['epsilon']:g}, {fields['delta']:g})"
    sentence = _sentence(account, guarantee, clip, norm, selected)
    if verdict:
        sentence = f"{sentence} {verdict}"
    return Statement(sentence, {name: value for name, value in fields.items() if value != ""})


def _way_out(account: Account) -> str:
    """Say what to do about an answer that guarantees nothing."""
    if account.kind == "paper":
        return "ask with variant rigorous"
    # a bound that was not reached says nothing of the noise
    if account.width_reason.startswith("effort"):
        return "ask with more effort, as the budget of work ended before one was proved"
    return "take more noise, or fewer steps"


def certificate_text(account: Account) -> str:
    """Return the certificate as `--certificate` writes it."""
    # no NaN and no infinity: the verifier, a program of its own, reads plain JSON
    return f"{json.dumps(account.certificate(), allow_nan=False)}\n"


def certificate_digest(account: Account) -> str | None:
    """Return the SHA-256 of the file that `--certificate` writes; None where there is no
    certificate."""
    try:
        return hashlib.sha256(certificate_text(account).encode()).hexdigest()
    except (ArgumentError, UnsupportedError):
        return None


def _sentence(account: Account, guarantee: str, clip: float | str, norm: str, selected: str) -> str:
    assert account.asked is not None
    releases = account.asked.releases
    change = _CHANGES[account.adjacency].format(unit=_unit(releases))
    released = f"these {len(releases)} kinds of noisy sums together"
    if len(releases) <= _SPELLED:
        released = " and ".join(
            f"{release.steps} {_released(release)} from {described(release.sampler, release.n)}"
            f" ({_mechanism(release, clip, norm)})"
            for release in releases
        )
    if selected:
        released = f"the best of {selected}, where each run makes {released},"
    subject = f"The release of {released}"
    attack = f"{without_attack(account).capitalize()}."
    if account.asked.training:
        subject = f"{account.asked.training}, {released}, which reveal at least as much,"
        attack = "No lower bound is given, since the training revealed less than these epochs."
    if account.lower > 0:
        attack = (
            f"An attack attains {account.quantity} = {down(account.lower)}: no claim below it "
            "can hold."
        )
    proof = "; ".join(filter(None, [account.theorem, f"dpsub {version('dpsub')}"]))
    return f"{subject} is {guarantee}-differentially private under {change} ({proof}). {attack}"


def _released(release: Release) -> str:
    if not isinstance(release.mechanism, str):
        return "releases"
    each = release.releases_per_sample
    drawn = "samples" if release.records_per_user is None else "samples of users"
    return (
        f"noisy sums over {drawn}" if each == 1 else f"noisy sums, {each} over each of the {drawn},"
    )


def _mechanism(release: Release, clip: float | str, norm: str) -> str:
    if not isinstance(release.mechanism, str):
        return f"{release.mechanism}, given by the distributions of its outputs"
    noise = _NOISE[release.mechanism]
    scale = f"{near(release.noise_multiplier)} {norm}"
    if not isinstance(clip, str):
        scale = near(release.noise_multiplier * clip)
    divided = ", divided by the size of the sample" if release.denominator == "realised" else ""
    if release.strategy is not None:
        noise = f"rows of a strategy matrix of {release.strategy.bands} bands with {noise}"
    return f"{noise} {scale} on sums of vectors clipped to norm {norm}{divided}"


def _level(releases: Sequence[Release]) -> str:
    if user_of(releases):
        return "user-level"
    return "record-level" if releases[0].group == 1 else "group-level"


def _unit(releases: Sequence[Release]) -> str:
    """Return the unit of privacy; all releases have the same."""
    group = releases[0].group
    if users := user_of(releases):
        return users
    if group == 1:
        return "one record"
    if isinstance(group, int):
        return f"up to {group} records of one unit"
    return f"up to {group[0]} records of one unit, with removal or addition of {group[1]} others"


def _trade_off(
    account: Account,
    releases: Sequence[Release],
    guarantee: tuple[float, float],
    prior: float | None,
) -> dict[str, float | str]:
    """Return mu of Gaussian differential privacy and the largest success of membership inference,
    and of guesses with a prior, where they are found within the effort."""
    epsilon, delta = guarantee
    epsilons = np.linspace(0.0, max(epsilon, 1e-3), _POINTS)
    try:
        question = Question(releases, str(account.adjacency), effort=_EFFORT, quick=True)
        curve = curve_of(question, epsilons)
    except NumericalError:
        return {}
    low, high = curve.membership(FALSE_POSITIVES)
    success = (low.tolist(), high.tolist())
    found: dict[str, float | str] = {"membership": membership_text(FALSE_POSITIVES, success)}
    if prior is not None:
        least, most = curve.reconstruction([prior])
        found["reconstruction"] = guesses_text([prior], (least.tolist(), most.tolist()))
    # mu is about the rarest outputs, too, which no sampling lowers: beside an epsilon that sampling
    # made small it would be read as another guarantee
    mu = curve.mu.upper
    if math.isfinite(mu) and GaussianProfile(mu).epsilon(delta) <= _AS_CLOSE * max(epsilon, 1e-3):
        found["mu"] = float(up(mu))
    return found


def _single(values: list[Any]) -> Any:
    """Return one value, or all of them in their order."""
    return values[0] if len(values) == 1 else ", ".join(map(near, values))
