"""Accountants: privacy of many compositions, from a pair of densities, a law or a proved profile.

`base` says what an answer is.  `pairs` holds the papers' pairs (with `gaussian_pair`, `mixture_pair` and `tilted` for
their numerics), `fourier` composes them by Algorithm 1 of MUST, as printed and as done, and `cell_mass` brackets the
same composition from exact masses on the same `grid`.  An answer made from one of the papers' pairs says what that pair
gives: it is not a guarantee for the sampler.

The rigorous core: `loss_law` (discrete laws of a loss, from above or below), `pair_losses` and `profile_losses` (made
from pairs and from proved profiles), `composition` (one tilted transform, every error charged; `chernoff`, `refinement`
and `directed_pair` serve it), `events` and `ledger` (what happens how often), `slot_chain`, `chain_profile`,
`group_lemma`, `gaussian_orders` and `laplace_profiles` (what is proved), `filler_pair`, `filler_flip` and `flip_attack`
(what is refuted), `law_trimming`, `noise_search`, `account`.
"""

from __future__ import annotations




