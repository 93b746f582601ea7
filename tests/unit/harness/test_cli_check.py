"""`cutproof check`: how its options are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutproof.harness.cli.check import columns, existing, pairs, tolerances
from cutproof.harness.exit_codes import UsageError


def test_columns_may_be_listed_or_repeated() -> None:
    assert columns(["a, b", "c"]) == ("a", "b", "c")
    assert columns([]) == ()


def test_pairs_name_what_is_none() -> None:
    assert pairs("--rename", ["a=b,c=d", "e=f=g"]) == {"a": "b", "c": "d", "e": "f=g"}
    for wrong in ("a", "=b", "a="):
        with pytest.raises(UsageError, match=f"--rename takes NAME=VALUE, not '{wrong}'"):
            pairs("--rename", [wrong])


def test_tolerances_are_numbers_of_0_or_more() -> None:
    assert tolerances("--tolerance", ["price=1e-9", "size=0"]) == {"price": 1e-9, "size": 0.0}
    for wrong, says in (("x", "is not a number"), ("-1", "has to be 0 or more"), ("nan", "has to be 0 or more")):
        with pytest.raises(UsageError, match=says):
            tolerances("--tolerance", [f"price={wrong}"])


def test_a_table_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert existing(str(tmp_path)) == tmp_path
    with pytest.raises(UsageError, match="there is no"):
        existing(str(tmp_path / "none.csv"))
