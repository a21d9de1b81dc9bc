"""Experiments of the tournament."""
