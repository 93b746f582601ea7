"""The place from which users' files of earlier versions import what their counterparts need, for one release.

It is `properties/semantics/user_functions.py`; the names that users need are in `cutproof` itself.
"""

from __future__ import annotations

import sys

from .semantics import user_functions

sys.modules[__name__] = user_functions
