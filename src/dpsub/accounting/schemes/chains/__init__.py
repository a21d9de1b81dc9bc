"""Samples with replacement, and chains of several stages."""
