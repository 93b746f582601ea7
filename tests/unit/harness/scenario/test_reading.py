"""Files that may come from anybody: bounded, never waited for, and refused in one line."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from cutproof.harness.cli.terminal.output import Output
from cutproof.harness.runtime.exit_codes import LINE, UsageError, shortened
from cutproof.harness.scenario.reading import DEPTH_LIMIT, KEY_LIMIT, FileError, bytes_of, json_of, toml_of


def test_bytes_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert bytes_of(path, 5) == b"12345"
    with pytest.raises(FileError, match="5 bytes; the limit is 4"):
        bytes_of(path, 4)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to("loop")
    for name, reason in {
        "pipe": "no file",
        "zero": "no file",
        ".": "a folder",
        "loop": "symbolic links",
        "none": "No such",
    }.items():
        with pytest.raises(FileError, match=reason):
            bytes_of(tmp_path / name, 10)
    with pytest.raises(FileError):
        bytes_of(tmp_path / "a\0b", 10)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b' {"a": "\xff"}', "byte 8 is not UTF-8 text"),
        (b"[" * (DEPTH_LIMIT + 1), "nested deeper"),
        (b'{"a":' * 100_000, "nested deeper"),
    ],
)
def test_json_that_is_none(data: bytes, reason: str) -> None:
    with pytest.raises(FileError, match=reason):
        json_of(data, "x.json")


def test_a_byte_order_mark_is_no_part_of_the_text_and_brackets_in_texts_do_not_nest(tmp_path: Path) -> None:
    assert json_of(b"\xef\xbb\xbf{}", "x.json") == b"{}"
    torn = b'["' + b'[{\\"' * 200 + b'"]'
    assert json_of(torn, "x.json") == torn
    (tmp_path / "a.toml").write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert toml_of(tmp_path / "a.toml", "settings") == {"a": 1}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"a = " + b"[" * 5_000 + b"]" * 5_000, "nested too deeply"),
        (b"a = '\xff'", "not UTF-8"),
        (b"a = " + b"9" * 50_000, "is not settings"),
        (b"a" + b".a" * 100_000 + b" = 1", f"more than {KEY_LIMIT} dots"),
        (b"[a" + b'."a"' * 100_000 + b"]", f"more than {KEY_LIMIT} dots"),
        (b"a = 1\na = 2", "is not settings"),
        (b"a = \0", "is not settings"),
    ],
)
def test_toml_that_is_none(data: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(data)
    with pytest.raises(FileError, match=reason):
        toml_of(tmp_path / "a.toml", "settings")


def test_dots_that_join_no_key_are_no_matter(tmp_path: Path) -> None:
    numbers, pins = ", ".join(["1.5"] * 500), ", ".join(['"x==1.2.3"'] * 500)
    lines = [f"a = [{numbers}]", f"b = [{pins}]", "# " + "a." * 500, 'c = "' + "d.e" * 500 + '"']
    (tmp_path / "a.toml").write_text("\n".join(lines))
    assert list(toml_of(tmp_path / "a.toml", "settings")) == ["a", "b", "c"]


QUOTED = ["x" * 50_000, "x y " * 12_500, "'" * 50_000, "\n" * 50_000, "ab\udc80", "\x1b[2J", "語" * 5_000, "語 é " * 50]


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1", "cp1252", "shift_jis"])
@pytest.mark.parametrize("quoted", QUOTED)
def test_what_a_message_quotes_is_abbreviated_and_what_to_do_stays(quoted: str, encoding: str) -> None:
    memory = io.BytesIO()
    with io.TextIOWrapper(memory, encoding=encoding, errors="backslashreplace", write_through=True) as stream:
        Output(stderr=stream).error(UsageError(f"a.json: {quoted!r} is no name; use letters"))
        Output(stderr=stream).complain(f"a.json: {quoted!r} is no name; use letters")
        first, second = memory.getvalue().decode(encoding).splitlines()
    assert first == second
    line = first.removeprefix("cutproof: ")
    assert len(line) <= LINE
    assert line.startswith("a.json: ")
    assert line.endswith("is no name; use letters")
    assert line.isprintable()


def test_a_line_that_fits_is_left_alone() -> None:
    path = "/" + "x" * 200
    assert shortened(f"there is no {path}") == f"there is no {path}"
