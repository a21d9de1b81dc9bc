"""Accountants: the privacy of many releases from samples.

`account` says what an answer is and finds the theorems that apply; `search` finds noise, steps and sizes, `audit` plays
the attack, `amplify` describes one release.  Below them: `proofs` (what is proved of chains of stages), `laplace`,
`pairs` (dominating pairs), `attacks` (what data sets attain), `bracket` (events, their composition, and answers on
finer and finer grids), `discretise`, `pld` and `compose` (privacy loss distributions and their transform, every error
charged).  `algorithm1` is that of MUST, as printed and as done.
"""
