"""Claims of the MUST paper: numbers, settings and statements of its text, each with the criterion
that decides it."""

from __future__ import annotations

from dpsub.papers.must.claims.accounting import NOISE_AND_COMPOSITION
from dpsub.papers.must.claims.amplification import AMPLIFICATION
from dpsub.papers.must.claims.numbers import NUMBERS
from dpsub.papers.must.claims.utility import UTILITY
from dpsub.reproduce import claims as ask


class MustClaims(ask.Claims):
    name = "claims"
    caption = (
        "Numbers and statements of the text, each computed from the records: yes (1) where a "
        "statement holds and no (0) where it fails. The note gives the numbers that decide."
    )
    claims = (*NUMBERS, *AMPLIFICATION, *NOISE_AND_COMPOSITION, *UTILITY)
