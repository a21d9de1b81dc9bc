"""Fay, Mair and Sjölund 2024: importance sampling."""
