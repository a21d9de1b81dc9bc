"""The verifier is a program apart from the package: its modules are imported here by the names that
`python verifier` has for them."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "verifier"))
