"""Data sets: where their files come from, how they are prepared, what stands in for them; nothing
about privacy."""
