"""Numbers in the texts of this paper's folder that are neither ours nor printed as such."""

GIVEN = {"4.2", "1e-4", "1e-5"}
"""A section's number; delta."""
