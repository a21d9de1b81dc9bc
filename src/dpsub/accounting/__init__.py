"""Accountants: the privacy of many releases from samples.

Four folders, one above the other: `questions` (an account, a curve, a search, a ledger, ...) ask
`schemes` (the theorem and the attacks of each family of samplers), which use `games` (the adversary
who sees all past releases) and `engine` (privacy loss distributions on a grid, and the budget of
work). Schemes and questions are about a `release`.
"""
