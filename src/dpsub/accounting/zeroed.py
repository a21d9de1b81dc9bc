"""A record of a sample without replacement against one that contributes 0 (docs/accounting.md,
section 3.9).

With v the record's vector and g that of the member that it replaces the outputs are, up to a
translation, (1 - q) N(0) + q N(v - g) and (1 - q) N(0) + q N(-g): |v - g| <= 2 and |v| <= 1 bound
the divergence of the first from the second by that of N(2) and N(1) in their places, |g| <= 1 and
|v| <= 1 that of the second from the first by that of N(1) and N(0). Each is attained in a single
step.
"""

from __future__ import annotations

from dpsub.accounting.game import replaced_profile
from dpsub.accounting.pairs import ZeroedPair
from dpsub.accounting.pld import RememberedProfile
from dpsub.accounting.privacy_events import DominatedEvent

PROFILE = (
    "the larger of two pairs at each order: shifts 2 C against C, with the record; C "
    "against 0, without it"
)
ATTACK = "data sets (C, -C, ..., -C) against (0, -C, ..., -C), both directions"
SENSITIVITY = (
    "the record put to 0 moves the sum by C, and takes the place of another, which "
    "moves it by up to 2 C"
)


def zeroed_event(pair: ZeroedPair) -> DominatedEvent:
    """One step, of which this is the pair that the attack attains."""
    with_record, without = (
        RememberedProfile(
            replaced_profile(pair.rate, reach / pair.deviation, 1 / pair.deviation, pair.missed)
        )
        for reach in (2.0, 1.0)
    )
    return DominatedEvent(lambda tail: (with_record, without), pair, attained=True)
