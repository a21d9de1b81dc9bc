"""Budget recycling: noise that is redrawn while it is too large, with its exact privacy profile."""

from __future__ import annotations

from dpsub.recycling.kernels import GaussianKernel, Kernel, LaplaceKernel
from dpsub.recycling.law import Recycled, RecycledProfile

__all__ = ["GaussianKernel", "Kernel", "LaplaceKernel", "Recycled", "RecycledProfile"]
