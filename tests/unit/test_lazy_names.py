"""`import cutproof` is light, and its public names are there when asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import cutproof

HEAVY = ("hypothesis", "jinja2", "msgspec", "pandas", "pyarrow", "pyspark", "pytest")


def _loaded_after(code: str) -> set[str]:
    listing = f"import sys\n{code}\nprint('loaded', *(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_importing_it_loads_nothing_heavy() -> None:
    assert _loaded_after("import cutproof") == set()


def test_the_help_loads_no_library_but_that_of_its_values() -> None:
    code = "from cutproof.harness.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass"
    assert _loaded_after(code) <= {"msgspec"}


def test_the_pytest_plugin_loads_nothing_but_pytest() -> None:
    assert _loaded_after("import cutproof.harness.pytest_plugin.plugin") == {"pytest"}


@pytest.mark.parametrize("name", cutproof.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(cutproof, name) is not None
    assert name in dir(cutproof)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'veirfy'"):
        cutproof.veirfy  # noqa: B018
