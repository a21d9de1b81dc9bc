"""Poisson samples that are cut to a largest size."""
