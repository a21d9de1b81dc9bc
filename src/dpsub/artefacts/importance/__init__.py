"""Artefacts of Fay, Mair and Sjölund 2024: personalised privacy amplification by importance sampling."""
