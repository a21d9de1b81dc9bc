"""Accountants: privacy of many compositions, from a pair of densities or a law.

Modules: `base` (what an answer is), `pairs` (the papers' pairs of Gaussian mixtures), `tilted` (their sums in log
space), `fourier` (Algorithm 1 of MUST, as printed and as done), `cell_mass` (a bracket of the same pair from exact cell
masses).  An answer made from one of the papers' pairs says what that pair gives: it is not a guarantee for the sampler.
"""
