"""Numbers in the texts of this paper's folder that are neither ours nor printed as such."""

GIVEN = {"0.99", "0.75", "0.62"}
"""Numbers of laws and mechanisms of examples."""
