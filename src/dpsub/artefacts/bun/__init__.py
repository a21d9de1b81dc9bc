"""Artefacts of Bun et al. 2022: privacy of cluster, stratified and other sampling designs."""
