"""Accountants: privacy of many compositions, from a pair of densities or a law.

`base` says what an answer is.  `pairs` holds the papers' pairs (with `gaussian_pair`, `mixture_pair` and `tilted` for
their numerics), `fourier` composes them by Algorithm 1 of MUST, as printed and as done, and `cell_mass` brackets the
same composition from exact masses on the same `grid`.  An answer made from one of the papers' pairs says what that pair
gives: it is not a guarantee for the sampler.
"""
