"""What is computed on samples of data, and the noise that it needs: DP-SGD, and noisy statistics of
subsets."""
