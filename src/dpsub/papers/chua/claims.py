"""Statements of Chua et al., each with its criterion."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from dpsub.reproduce import claims
from dpsub.reproduce.claims import Finding, Frames, Setting, about_privacy, pick

EPOCH, EPOCHS, BATCHES = "chua_epoch", "chua_epochs", "chua_batches"
NOISES = (EPOCHS, BATCHES)
MUCH = 2.0  # from this ratio of two deltas or two epsilons on, a gap is called substantial
SEARCHED = 0.005  # relative distance within which two searched noise multipliers agree
ATTAINED = 0.001  # relative distance of an attack, on a grid, from a closed formula
SHUFFLED = ("persistent_shuffle", "shuffle")
Ask = Callable[[Frames], Finding]


def noises(frames: Frames) -> pd.DataFrame:
    """Return the records of both figures about noise."""
    return pd.concat([frames[name] for name in NOISES], ignore_index=True)


def gap_in_one_epoch(frames: Frames) -> Finding:
    """Ask whether delta of shuffled batches is much larger than that of Poisson samples."""
    frame = frames[EPOCH]
    least = frame["shuffle_lower"] / frame["poisson_upper"]
    most = frame["shuffle_upper"] / frame["poisson_lower"]
    note = (
        f"an attack attains {least.min():.3g} times δ of Poisson samples, or more, in "
        f"{len(frame)} pairs of noise and ε; substantial is taken as {MUCH:g} times"
    )
    return claims.truth(least >= MUCH, most < MUCH, note)


def gap_in_many_epochs(frames: Frames) -> Finding:
    """Ask whether epsilon of shuffled batches is much larger than that of Poisson samples, with the
    noise that these need."""
    frame = noises(frames)
    frame = frame[frame["sampler"].isin(SHUFFLED) & (frame["epochs"] > 1)]
    lower, upper = (frame[f"epsilon_{end}"] / frame["epsilon"] for end in ("lower", "upper"))
    note = (
        f"with the noise of Poisson samples an attack on shuffled batches attains "
        f"{lower.min():.3g} to {lower.max():.3g} times their ε in {len(lower)} settings; "
        f"substantial is taken as {MUCH:g} times"
    )
    return claims.truth(lower >= MUCH, upper < MUCH, note)


def fixed_order(frames: Frames) -> Finding:
    """Ask whether the formula for a fixed order is the exact delta, as far as our bounds tell."""
    frame = frames[EPOCH]
    formula, lower, upper = (frame[c] for c in ("fixed", "fixed_lower", "fixed_upper"))
    inside = (lower <= formula) & (formula <= upper)
    note = (
        f"between our bounds at {inside.sum()} of {len(frame)} pairs of noise and ε, these being "
        f"at most {(upper / lower - 1).max():.2g} apart, relatively"
    )
    return claims.truth(inside & (upper / lower < 1.01), ~inside, note)


def cube(frames: Frames) -> Finding:
    """Ask whether the formula for one epoch is a lower bound: an attack of ours attains it."""
    frame = frames[EPOCH]
    ratio = frame["shuffle_lower"] / frame["cube"]
    note = f"an attack attains {ratio.min():.4f} to {ratio.max():.4f} times the formula"
    return claims.truth(ratio >= 1 - ATTAINED, frame["cube"] > frame["shuffle_upper"], note)


def many_epochs(sampler: str) -> Ask:
    """Ask whether the formula for many epochs is a lower bound on the noise that is needed."""

    def ask(frames: Frames) -> Finding:
        frame = pick(noises(frames), sampler=sampler)
        ratio = frame["noise_lower"] / frame["noise_paper"]
        room = frame["noise_upper"] / frame["noise_paper"]
        note = (
            f"an attack refutes {ratio.min():.4f} to {ratio.max():.4f} times this noise, and "
            f"{room.min():.3f} to {room.max():.3f} times it is proved to be enough"
        )
        return claims.truth(ratio >= 1 - SEARCHED, room < 1, note)

    return ask


def pessimistic(frames: Frames) -> Finding:
    """Ask whether the code's estimate from above, which it does not call a bound, is one."""
    frame = pick(noises(frames), sampler="shuffle")
    target, upper, lower = (
        frame[column] for column in ("epsilon", "pessimistic_upper", "pessimistic_lower")
    )
    fixed = pick(noises(frames), sampler="deterministic")["noise_upper"].to_numpy()
    ratio = frame["noise_pessimistic"] / fixed
    note = (
        f"its noise is proved to be enough at {(upper <= target).sum()} of {len(frame)} settings; "
        f"it is {ratio.min():.3g} to {ratio.max():.3g} times that of a fixed order"
    )
    return claims.truth(upper <= target, lower > target, note)


class ChuaClaims(claims.Claims):
    name = "claims"
    caption = (
        "Statements of both abstracts and of the published code, judged by our two bounds, one "
        "record at 0 (zero_out) and its step of an epoch hidden. Formulas were written from the "
        "code; the texts of theorems and tables could not be read."
    )
    claims = (
        *about_privacy("gap_one_epoch", "2403.17673, abstract", gap_in_one_epoch, EPOCH),
        *about_privacy("gap_many_epochs", "2411.04205, abstract", gap_in_many_epochs, *NOISES),
        *about_privacy("fixed_exact", "Code, deterministic batches", fixed_order, EPOCH),
        *about_privacy("cube_lower", "Code, shuffled batches", cube, EPOCH),
        *about_privacy(
            "persistent_lower", "Code, one order", many_epochs("persistent_shuffle"), *NOISES
        ),
        *about_privacy("dynamic_lower", "Code, reshuffled", many_epochs("shuffle"), *NOISES),
        *about_privacy("pessimistic", "Code, pessimistic_estimate", pessimistic, *NOISES),
        Setting("example_noise", "sigma", f"{EPOCH}.noises.0"),
        Setting("example_steps", "steps", f"{EPOCH}.steps"),
        Setting("figure3_epsilon", "epsilon", f"{BATCHES}.epsilon"),
        Setting("figure3_delta", "delta", f"{BATCHES}.delta"),
        Setting("figure3_few", "epochs", f"{BATCHES}.epochs.0"),
        Setting("figure3_many", "epochs", f"{BATCHES}.epochs.1"),
        Setting("figure6_epsilon", "epsilon", f"{EPOCHS}.epsilon"),
        Setting("figure6_delta", "delta", f"{EPOCHS}.delta"),
        Setting("figure6_batch", "batch", f"{EPOCHS}.batch"),
    )
