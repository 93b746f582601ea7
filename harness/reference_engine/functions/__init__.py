"""User functions that the package ships (OPS-4): a scenario that names one can be run anywhere, without `--function`.

Each is written as a user would write it, said once more in plain Python and once
in SQL, in one file: the class is the engine's half.  Their names begin with
`RESERVED` (`harness/workloads/user_functions.py`), which no other function's may;
nothing else that a scenario names is ever loaded.
"""

from __future__ import annotations

from .base import UserFunction
from .changes import CHANGES
from .distinct import DISTINCT
from .lulls import LULLS
from .periods import PERIODS
from .standby import STANDBY

SHIPPED: tuple[UserFunction, ...] = (CHANGES, DISTINCT, PERIODS, STANDBY, LULLS)
