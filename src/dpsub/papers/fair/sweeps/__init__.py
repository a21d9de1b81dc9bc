"""What is swept cell by cell."""
