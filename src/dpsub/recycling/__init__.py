"""Budget recycling: noise that is drawn again while it is too large, with what its privacy really
is."""

from __future__ import annotations

from dpsub.recycling.kernels import GaussianKernel, Kernel, LaplaceKernel
from dpsub.recycling.law import Recycled, RecycledProfile

__all__ = ["GaussianKernel", "Kernel", "LaplaceKernel", "Recycled", "RecycledProfile"]
