"""Experiments of this paper, by what is released: once, many times, on a sample; and its statements
in single cases."""
