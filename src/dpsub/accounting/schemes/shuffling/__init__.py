"""Shuffled epochs: each record is in one step of an epoch, in an order that is drawn again."""
