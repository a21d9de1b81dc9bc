"""The cases in which the statements of Bun et al. are put to the test."""
