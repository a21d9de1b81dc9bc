"""Several records of one unit of privacy."""
