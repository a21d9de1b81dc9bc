"""Questions about releases and their answers: accounts, curves, checks, searches, recommendations,
selections, ledgers, audits; and what is made of an answer.
"""
