"""Jiang, Du, Sharma and Yan 2024: budget recycling."""
