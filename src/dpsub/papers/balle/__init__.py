"""Balle, Barthe and Gaboardi 2018: amplification by couplings and divergences."""
