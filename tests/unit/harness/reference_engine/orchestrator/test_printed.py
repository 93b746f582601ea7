"""What a program said last, as a user is told it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutproof.harness.reference_engine.orchestrator.printed import last_words

STAMP = "2026-11-21 09:00:00.000 UTC [77]"
READY = f"{STAMP} LOG:  database system is ready to accept connections"
CHECKPOINT = f"{STAMP} LOG:  checkpoint complete: wrote 3 buffers"
EARLY = f"{STAMP} FATAL:  the database system is starting up"
SENT_AWAY = f"{STAMP} FATAL:  terminating connection due to administrator command"
FULL = f'{STAMP} FATAL:  could not write to file "pg_wal/xlogtemp.77": No space left on device'


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ([], "it has printed nothing"),
        (["", "  "], "it has printed nothing"),
        (["Traceback", "  KeyError: 'x'  ", ""], "KeyError: 'x'"),
        ([READY, CHECKPOINT], "it has not complained"),
        ([EARLY, READY, SENT_AWAY], "it has not complained"),
        ([READY, FULL, f"{STAMP} LOG:  database system is shut down"], FULL),
        ([READY, "initdb: error: could not create directory"], "initdb: error: could not create directory"),
    ],
)
def test_the_last_words_are_those_that_say_what_was_wrong(log: list[str], words: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("\n".join(log))
    assert last_words(tmp_path / "log") == words


def test_a_program_without_a_log_has_reported_nothing(tmp_path: Path) -> None:
    assert last_words(tmp_path / "log") == "it has printed nothing"
