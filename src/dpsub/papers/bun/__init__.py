"""Bun, Drechsler, Gaboardi, McMillan and Sarathy 2022: stratified and cluster sampling."""
