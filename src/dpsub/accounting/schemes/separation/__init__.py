"""Poisson samples whose records wait between their steps."""
