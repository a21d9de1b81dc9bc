"""Numerics: privacy loss distributions on a grid, their composition and inversion, and the budget
of work. No sampler and no theorem about one stands here.
"""
