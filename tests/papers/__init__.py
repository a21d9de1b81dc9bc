"""Tests of the papers, one folder each."""
