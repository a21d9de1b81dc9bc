"""Importance sampling with personalised privacy: each record is included on its own, and weighs 1 over its chance.

`losses` (what sampling does to personalised profiles), `weights` and `printed_weights` (the largest weights that a
target allows), `samplers` (inclusion probabilities and draws), `calibrate` with `norm_minimum` (noise for a target
and a size), `weighted_sum`, `noise`, `lloyd`, `lloyd_loop` (mechanisms), `norm_pair`, `approximate`, `gaussian`
(epsilon with a delta), `audit` (what canaries show), `coreset` (what sampling does to costs).  The statements are
proved in docs/importance.md.

The Poisson importance sampler is no member of the registries of `dpsub.sampling`: those draw from public sizes or
strata and their estimators take the inclusion probabilities from the design, while here chances and weights belong
together, are functions of the record itself, and are never released.
"""

from __future__ import annotations




