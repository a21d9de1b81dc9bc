"""Accountants: the privacy of many releases from samples.

`account` says what an answer is and which theorems apply; `search`, `audit` and `amplify` use it.
Below: `proofs`, `laplace`, `pairs` (dominating pairs), `attacks`, `bracket` (events and answers on
finer and finer grids), `discretise`, `pld` and `compose` (privacy loss distributions).
"""
