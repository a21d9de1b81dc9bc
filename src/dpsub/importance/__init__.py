"""Importance sampling with personalised privacy: each record is included independently, with a
weight of 1 over its inclusion probability.

The statements are proved in docs/importance.md. The Poisson importance sampler is not registered in
`dpsub.sampling`: the estimators there take inclusion probabilities from a public design, while here
probabilities and weights are functions of the record itself and are never released.
"""
