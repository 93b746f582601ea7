"""The servers that a run on real processes uses: where each is found, and its command line.

The launcher starts, kills and reaps them.
"""

from __future__ import annotations
