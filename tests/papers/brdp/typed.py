"""Numbers in the texts of this paper's folder that are neither ours nor printed as such."""

GIVEN = {"4.5", "0.99", "1e-3", "1.05", "0.55", "0.022", "0.012", "1e-6"}
"""Numbers of examples; 22 and 12 over 1000."""
