"""dpsub: what does a sampling scheme really buy in differential privacy?"""

__version__ = "0.1.0"
