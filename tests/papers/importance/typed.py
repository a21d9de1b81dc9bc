"""Numbers in the texts of this paper's folder that are neither ours nor printed as such."""

GIVEN = {"0.25"}
"""The number (1/2)^2."""
