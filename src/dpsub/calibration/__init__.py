"""From a wanted (epsilon, delta) to the scale of the noise."""

from __future__ import annotations

from dpsub.calibration.gaussian import analytic_gaussian_scale, classical_gaussian_scale, classical_is_valid

__all__ = ["analytic_gaussian_scale", "classical_gaussian_scale", "classical_is_valid"]
