"""What users' files of earlier versions import is still there, and is the same."""

from __future__ import annotations

import importlib

import cutproof
from cutproof.properties.model import workload
from cutproof.properties.semantics import user_functions


def test_the_description_of_work_is_where_it_was_too() -> None:
    assert importlib.import_module("cutproof.properties.workload") is workload
    assert importlib.import_module("cutproof.properties.user_functions") is user_functions


def test_what_users_need_of_them_is_in_the_package_itself() -> None:
    assert cutproof.Input is workload.Input
    assert cutproof.END_OF_TIME == workload.END_OF_TIME
    assert cutproof.KeyRecord is user_functions.KeyRecord
