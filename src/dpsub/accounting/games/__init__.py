"""The adversary who sees all past releases: games that bound what any adversary gains, and attacks
that are played.
"""
