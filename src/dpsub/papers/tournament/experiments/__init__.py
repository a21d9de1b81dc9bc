"""What the tournament computes."""
