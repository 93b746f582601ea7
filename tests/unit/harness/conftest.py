"""Makes the helpers beside the tests importable (`subjects`, `scenarios`), whatever pytest's import mode."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1] / "properties"))  # the toy, on which `narrow_engine` stands
