"""Artefacts of Jiang et al. 2024: budget recycling."""
