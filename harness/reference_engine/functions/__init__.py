"""User functions that the package ships (OPS-4).  A scenario that names one runs anywhere, without `--function`.

Each file has one function three times: as a class that the engine runs, in plain Python
and in SQL.  Only their names may begin with `RESERVED` (`harness/workloads/user_functions.py`).
No other function that a scenario names is loaded without `--function`.
"""

from __future__ import annotations

from .base import UserFunction
from .changes import CHANGES
from .distinct import DISTINCT
from .lulls import LULLS
from .periods import PERIODS
from .standby import STANDBY

SHIPPED: tuple[UserFunction, ...] = (CHANGES, DISTINCT, PERIODS, STANDBY, LULLS)
