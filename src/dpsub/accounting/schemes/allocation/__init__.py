"""Random allocation: each record is in one of the t steps of an epoch, or in k of them."""
