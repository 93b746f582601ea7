"""The merge of what both ends of a channel wrote, on journals written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutproof.properties.model.history import Channel
from cutproof.reference_impl.core.vocabulary.ids import AttemptId
from unit.harness.journals import Script

NAME = "a-0>b-0"


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


def sends(script: Script, attempt: int, *origins: int) -> None:
    log = script.process("a-0").channel_opened(NAME, AttemptId(attempt))
    for origin in origins:
        log.sent.append(origin)
    script.later()


def puts_back(script: Script, attempt: int, *origins: int) -> None:
    log = script.process("b-0").channel_refilled(NAME, AttemptId(attempt))
    for origin in origins:
        log.recovered.append(origin)
    log.recovered_watermarks.append((50, len(origins)))
    script.later()


def channels(script: Script) -> list[Channel]:
    return script.history().channels


@pytest.mark.parametrize("first", ["sender", "receiver"])
def test_both_ends_write_of_one_channel(script: Script, first: str) -> None:
    if first == "sender":
        sends(script, 2, 7, 8)
        puts_back(script, 2, 5)
    else:
        puts_back(script, 2, 5)
        sends(script, 2, 7, 8)

    (channel,) = channels(script)

    assert (channel.name, channel.attempt) == (NAME, 2)
    assert channel.content == [5, 7, 8]
    assert channel.recovered_watermarks == [(50, 1)]


def test_each_attempt_has_a_channel_of_its_own(script: Script) -> None:
    sends(script, 1, 5, 6)
    puts_back(script, 2, 6)
    sends(script, 2, 7)

    assert [(one.attempt, one.recovered, one.sent) for one in channels(script)] == [(1, [], [5, 6]), (2, [6], [7])]


def test_a_channel_whose_sender_never_came_has_what_was_put_back(script: Script) -> None:
    puts_back(script, 2, 6)

    assert [(one.attempt, one.content) for one in channels(script)] == [(2, [6])]
