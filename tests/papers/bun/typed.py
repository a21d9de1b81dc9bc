"""Numbers in the texts of this paper's folder that are neither ours nor printed as such."""

GIVEN = {"3.1", "4.3", "5.1", "5.2", "6.1"}
"""Numbers of theorems and a proposition."""
