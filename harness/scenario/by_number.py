"""One scenario of a run, by its number: `scenarios.jsonl:20` is the scenario drawn as number 20.

A run appends each scenario that it has judged to one file.  A place in that file is written as compilers write a line
of a file, but with the scenario's own number, which does not depend on the order in which workers finish.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from .files import decode_scenario, read_scenario
from .model import Scenario
from .reading import FileError, demand_file

SCENARIOS = "scenarios.jsonl"
LINE_LIMIT_BYTES = 64 * 1024 * 1024
"""for a scenario with its verdicts; a run never writes a longer line"""

_PLACE = re.compile(r"(?P<path>.+\.jsonl):(?P<index>\d+)", re.DOTALL)


class _Line(msgspec.Struct):
    index: int
    scenario: msgspec.Raw


_lines = msgspec.json.Decoder(_Line)


def place_of(index: int) -> str:
    """The place in a run's folder that has the scenario of this number."""
    return f"{SCENARIOS}:{index}"


def scenario_at(place: Path) -> Scenario:
    """The scenario in a file of its own, or at a place in a run's file; raises FileError."""
    named = _PLACE.fullmatch(str(place))
    if named is None or place.exists():
        return read_scenario(place)
    return _numbered(Path(named["path"]), int(named["index"]), str(place))


def _torn(number: int, line: bytes) -> str:
    """What is wrong with a line that does not end."""
    if len(line) >= LINE_LIMIT_BYTES:
        return f"line {number} is too long, it has {LINE_LIMIT_BYTES:,} bytes or more"
    return f"line {number} is cut off"


def _numbered(path: Path, index: int, where: str) -> Scenario:
    demand_file(path)
    try:
        with path.open("rb") as lines:
            number = 0
            while line := lines.readline(LINE_LIMIT_BYTES):
                number += 1
                if not line.endswith(b"\n"):
                    raise FileError(f"{path} has no scenario {index} in its complete lines: {_torn(number, line)}")
                found = _lines.decode(line)
                if found.index == index:
                    return decode_scenario(bytes(found.scenario), where=where)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise FileError(f"{path} holds no scenarios of a run: {error}") from None
    raise FileError(f"{path} has no scenario {index}: the run did not judge it")
