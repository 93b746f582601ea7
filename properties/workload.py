"""The place from which users' files of earlier versions import the description of work, for one release.

It is `properties/model/workload.py`; the names that users need are in `cutproof` itself.
"""

from __future__ import annotations

import sys

from .model import workload

sys.modules[__name__] = workload
