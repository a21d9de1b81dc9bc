"""Importance sampling with personalised privacy: each record is included on its own, and weighs 1 over its chance.

`losses` (what sampling does to personalised profiles), `weights` (the largest that a target allows), `samplers`
(inclusion probabilities, draws, weighted sums), `calibrate` (noise for a target and a size), `lloyd` (weighted
DP-Lloyd), `approximate` (epsilon with a delta), `audit` (what draws show).  The statements are proved in
docs/importance.md.

The Poisson importance sampler is no member of the registries of `dpsub.sampling`: those draw from public sizes or
strata and their estimators take the inclusion probabilities from the design, while here chances and weights belong
together, are functions of the record itself, and are never released.
"""
