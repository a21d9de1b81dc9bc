"""Experiments of this study, each in its variants."""
