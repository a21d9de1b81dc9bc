"""Accountants: privacy of many compositions, from a pair of densities or a law.

Modules: `base` (what an answer is), `pairs` (the papers' pairs of Gaussian mixtures), `tilted` (their sums in log
space), `fourier` (Algorithm 1 of MUST, as printed and as done), `cell_mass` (a bracket of the same pair from exact cell
masses).

The rigorous core: `loss_law` (discrete laws of a loss, from above or below), `pair_losses` and `profile_losses` (made from
pairs and from proved profiles), `composition` (one tilted transform, every error charged), `chernoff`, `refinement`,
`events` and `ledger` (what happens how often), `slot_chain`, `chain_profile` and `group_lemma` (what is proved for chains
of stages), `filler_pair`, `filler_flip` and `flip_attack` (what is refuted), `laplace_profiles`, `noise_search`, `account`.

An answer made from one of the papers' pairs says what that pair gives: it is not a guarantee for the sampler.
"""
