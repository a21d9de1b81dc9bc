"""Experiments of this paper, each in the variants in which the paper can be read."""
