"""The merge of what several attempts of a sender wrote of one channel that outlives them, on journals written by
hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutproof.properties.model.history import AttemptStarted, Channel
from cutproof.reference_impl import observed as o
from cutproof.reference_impl.core.vocabulary import status_changes as changes
from cutproof.reference_impl.core.vocabulary.causes import Killed
from cutproof.reference_impl.core.vocabulary.ids import AttemptId, TaskId
from cutproof.reference_impl.processes.disk.journal import ChannelJournal
from unit.harness.journals import Script

NAME = "a-0>b-0"


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


def opens(script: Script, attempt: int, *, first: int = 0, expects: int | None = None) -> ChannelJournal:
    """An attempt of the sender in a process of its own; with `expects` one that came up alone."""
    script.later()
    channel = script.process("a-0", attempt - 1).channel_opened(NAME, AttemptId(attempt))
    if expects is not None:
        script.later()
        channel.continued(AttemptId(1), first, expects)
    return channel


def sends(script: Script, channel: ChannelJournal, *origins: int) -> None:
    for origin in origins:
        channel.sent.append(origin)
    script.later()


def channels(script: Script) -> list[Channel]:
    return script.history().channels


def test_what_had_come_is_repeated_and_the_rest_is_sent(script: Script) -> None:
    sends(script, opens(script, 1), 5, 6, 7)
    again = opens(script, 2, first=1, expects=3)
    again.barriers.append((4, 0))
    sends(script, again, 6, 7, 8)
    again.barriers.append((5, 3))

    first, second = channels(script)

    assert (first.attempt, first.sent, first.repeated) == (1, [5, 6, 7], [])
    assert (second.attempt, second.sent, second.repeated) == (2, [8], [6, 7])
    assert second.barriers == [(4, 0), (5, 1)], "behind what was sent for the first time"


def test_what_had_reached_nobody_is_sent_again_for_the_first_time(script: Script) -> None:
    before = opens(script, 1)
    sends(script, before, 5, 6, 7)
    before.barriers.append((3, 3))
    sends(script, opens(script, 2, first=1, expects=2), 6, 7, 8)

    first, second = channels(script)

    assert (first.sent, first.barriers) == ([5, 6], [])
    assert (second.sent, second.repeated) == ([7, 8], [6])


def test_watermarks_have_numbers_as_well(script: Script) -> None:
    before = opens(script, 1)
    sends(script, before, 5)
    before.watermarks.append((10, 1))
    sends(script, before, 6)
    before.watermarks.append((20, 2))
    script.later()
    again = opens(script, 2, first=1, expects=3)
    again.watermarks.append((10, 0))
    sends(script, again, 6)
    again.watermarks.append((20, 1))
    sends(script, again, 7)

    first, second = channels(script)

    assert (first.sent, first.watermarks) == ([5, 6], [(10, 1)])
    assert (second.repeated, second.sent, second.watermarks) == ([6], [7], [(20, 0)])


def test_a_third_goes_on_behind_both_and_the_one_that_reached_nobody_counts_for_nothing(script: Script) -> None:
    sends(script, opens(script, 1), 5, 6)
    opens(script, 2)
    sends(script, opens(script, 3, first=0, expects=2), 5, 6, 7)
    sends(script, opens(script, 4, first=2, expects=3), 7, 8)

    assert [(one.attempt, one.repeated, one.sent) for one in channels(script)] == [
        (1, [], [5, 6]),
        (2, [], []),
        (3, [5, 6], [7]),
        (4, [7], [8]),
    ]


def test_what_a_zombie_writes_when_another_has_its_place_counts_for_nothing(script: Script) -> None:
    zombie = opens(script, 1)
    sends(script, zombie, 5)
    again = opens(script, 2, first=0, expects=1)
    sends(script, zombie, 6)
    zombie.barriers.append((3, 2))
    zombie.watermarks.append((9, 2))
    script.later()
    sends(script, again, 5, 6)

    first, second = channels(script)

    assert (first.sent, first.barriers, first.watermarks) == ([5], [], [])
    assert (second.repeated, second.sent) == ([5], [6])


def test_an_attempt_of_all_tasks_has_a_channel_of_its_own(script: Script) -> None:
    sends(script, opens(script, 1), 5)
    sends(script, opens(script, 2), 5, 6)
    assert [(one.sent, one.repeated) for one in channels(script)] == [([5], []), ([5, 6], [])]


def test_who_recovered_locally_is_reported_and_older_failures_of_it_are_no_news(script: Script) -> None:
    script.attempt(1, "a-0", "b-0")
    script.later()
    coordinator = script.process("coordinator")
    coordinator.saw(o.StatusChanged(1, changes.AttemptStarted(AttemptId(2), None, Killed())))
    coordinator.saw(o.StatusChanged(1, changes.RegionRestarted(AttemptId(2), None, (TaskId("a-0"),), True)))
    script.fails("a-0", "it is late", 1)
    script.fails("b-0", "it is its own", 1)

    history = script.history()

    (_, local) = (one for one in history.journal if isinstance(one, AttemptStarted))
    assert (local.tasks, local.in_place) == (["a-0"], True)
    assert [entry.task for entry in history.journal if type(entry).__name__ == "TaskFailed"] == ["b-0"]


def test_another_process_goes_on_with_a_log(script: Script) -> None:
    for incarnation, attempt in ((0, 1), (1, 2)):
        script.later()
        script.process("b-0", incarnation).saw(o.LogOpened("job-1/log/b-0-1/0", TaskId("b-0"), AttemptId(attempt)))
    script.later()
    script.process("b-0", 1).saw(o.LogTrimmed("job-1/log/b-0-1/0", 3))

    (log,) = script.history().logs

    assert (log.attempt, [before for _, before in log.trims]) == (1, [3])
