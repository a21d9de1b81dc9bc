"""Zhao and Liu 2023: multistage sampling (MUST)."""
