"""What the experiments on budget recycling share: releases for one budget, and their rows."""
