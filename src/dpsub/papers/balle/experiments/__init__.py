"""What the paper computed, in the variants in which it can be read."""
