"""Samplers at the same privacy: winners, costs, noise, and what becomes of the papers' ranking."""
