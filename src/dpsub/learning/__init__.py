"""Models and their training by DP-SGD, many runs at once; measures of predictors."""
