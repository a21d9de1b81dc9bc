"""Accountants: the privacy of many releases from samples.

Four folders, one above the other: `questions` (an account, a curve, a search, a ledger, ...) ask
`schemes` (what is proved of each family of samplers, and the attacks on it), which use `games` (the
adversary who sees all past releases) and `engine` (privacy loss distributions on a grid, and the
budget of work). A `release` is what schemes and questions are about.
"""
