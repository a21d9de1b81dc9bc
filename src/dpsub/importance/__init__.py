"""Importance sampling with personalised privacy: each record is included on its own, and weighs 1
over its chance.

The statements are proved in docs/importance.md. The Poisson importance sampler is in no registry of
`dpsub.sampling`: those estimators take inclusion probabilities from a public design, while here
chances and weights belong together, are functions of the record itself, and are never released.
"""
