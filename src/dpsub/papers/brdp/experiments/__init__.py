"""Experiments of this paper: one release, many releases, releases on a sample, and the paper's
statements in single cases."""
