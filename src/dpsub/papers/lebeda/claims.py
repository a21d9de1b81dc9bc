"""Statements of Lebeda et al., each with its criterion."""

from __future__ import annotations

from collections.abc import Callable

from dpsub.reproduce import claims
from dpsub.reproduce.claims import Finding, Frames, about_privacy, pick

SAMPLERS, DIRECTIONS = "lebeda_samplers", "lebeda_directions"
REMOVED, OPPOSITE = "lebeda_removed", "lebeda_opposite"
NEAR_ONE = (0.9, 1.1)
LARGE = 10.0
WITHIN = 0.01  # relative distance of our two bounds below which a number is called exact
Ask = Callable[[Frames], Finding]


def gap(frames: Frames) -> Finding:
    """Ask whether at some noise multiplier epsilon is near 1 for Poisson samples, a record being
    added or removed, and above 10 without replacement under substitution."""
    frame = frames[SAMPLERS]
    poisson = pick(frame, sampler="poisson", adjacency="add_remove").set_index("noise")
    wor = pick(frame, sampler="wor", adjacency="substitute").set_index("noise")
    near = (poisson["epsilon_lower"] >= NEAR_ONE[0]) & (poisson["epsilon_upper"] <= NEAR_ONE[1])
    found = near & (wor["epsilon_lower"] > LARGE)
    possible = (poisson["epsilon_upper"] >= NEAR_ONE[0]) & (poisson["epsilon_lower"] <= NEAR_ONE[1])
    possible &= wor["epsilon_upper"] > LARGE
    best = (wor["epsilon_lower"] / poisson["epsilon_upper"]).where(found).max()
    note = f"at {found.sum()} of {len(found)} noise multipliers, up to {best:.3g} times apart"
    return claims.truth([bool(found.any())], [not possible.any()], note)


def worst_of_one_step(frames: Frames) -> Finding:
    """Ask whether the order that is the worse one in a single step is the better one of several
    steps, at some epsilon."""
    frame = pick(frames[DIRECTIONS], law="laplace")
    one, several = frame[frame["steps"] == 1], frame[frame["steps"] > 1]
    # where both are 0 or the same, as at epsilon = 0, neither is worse
    worse = one["remove_lower"] > one["add_upper"]
    never = (one["add_lower"] > one["remove_upper"]).any()
    turned = several["add_lower"] > several["remove_upper"]
    other = (several["add_upper"] < several["remove_lower"]) | (several["epsilon"] == 0)
    note = (
        f"in one step a removed record has the larger δ at {worse.sum()} of {len(one)} ε, an added "
        f"one at none; in several steps an added one has it at {turned.sum()} of {len(several)}"
    )
    shown = bool(worse.any() and turned.any() and not never)
    return claims.truth([shown], [bool(never or other.all())], note)


def removed_suffices(frames: Frames) -> Finding:
    """Ask whether a removed record at every step has the epsilon of the worst adversary."""
    frame = frames[REMOVED]
    several = frame[frame["steps"] > 1]
    attack = several["epsilon_lower"] / several["removed_upper"]
    room = several["epsilon_upper"] / several["removed_lower"]
    one = frame[frame["steps"] == 1]
    exact = one["epsilon_upper"] / one["removed_lower"] - 1
    note = (
        f"in several steps an attack attains up to {attack.max():.4f} times its ε, and at most "
        f"{room.max():.3f} times it is proved; in one step they agree to {exact.abs().max():.1g}"
    )
    return claims.truth(several["removed_lower"] >= several["epsilon_upper"], attack > 1, note)


def opposite(sampler: str, *, dominates: bool) -> Ask:
    """Ask whether the pair of mixtures with means 1 and -1 bounds delta of one step, or does
    not."""

    def ask(frames: Frames) -> Finding:
        frame = pick(frames[OPPOSITE], sampler=sampler)
        attack = frame["delta_lower"] / frame["pair"]
        proof = frame["delta_upper"] / frame["pair"]
        note = (
            f"an attack attains {attack.min():.4g} to {attack.max():.4g} times its δ, and "
            f"{proof.min():.4g} to {proof.max():.4g} times it is proved"
        )
        exact = (attack <= 1) & (proof <= 1 + WITHIN)
        if dominates:
            return claims.truth(exact, attack > 1, note)
        return claims.truth([bool((attack > 1).any())], [bool(exact.all())], note)

    return ask


class LebedaClaims(claims.Claims):
    name = "claims"
    caption = (
        "Statements of the abstract, and two that reviews of an earlier version quote, judged by "
        "our two bounds. The hyperparameters are ours: those of the paper could not be read."
    )
    claims = (
        *about_privacy("gap", "Abstract", gap, SAMPLERS),
        *about_privacy("worst_of_one_step", "Abstract", worst_of_one_step, DIRECTIONS),
        *about_privacy("removed_suffices", "Reply to reviews", removed_suffices, REMOVED),
        *about_privacy("opposite_wrong", "Reviews", opposite("wor", dominates=False), OPPOSITE),
        *about_privacy(
            "opposite_poisson", "Reviews", opposite("poisson", dominates=True), OPPOSITE
        ),
    )
