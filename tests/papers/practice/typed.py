"""Numbers in the texts of this paper's folder that are neither ours nor printed as such."""

GIVEN = {"4.1", "15.96", "1.69", "1.555", "2.8996", "2.9097", "1e-6"}
"""Answers of other accountants; delta."""
