"""Merging: a bank holds what two banks held, in whichever order, and however often."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutproof.harness.chaos.bank import Bank
from cutproof.harness.chaos.merge import merge
from cutproof.harness.runtime.exit_codes import UsageError
from cutproof.reports.nights.model import Failure, Night
from unit.harness.chaos.banks import failure, files_in, night, unshrunk
from unit.harness.scenarios import chain

SCENARIOS = (chain(), chain(6))

failures = st.builds(lambda name, day: (failure(name, day=day), day), st.sampled_from("xyz"), st.integers(0, 2))
nights = st.builds(
    lambda name, scenarios, ended: night(name, scenarios=scenarios, ended=ended),
    st.sampled_from("ab"),
    st.integers(0, 2),
    st.booleans(),
)
contents = st.tuples(st.lists(failures, max_size=3), st.lists(nights, max_size=2), st.booleans())
Content = tuple[Sequence[tuple[Failure, int]], Sequence[Night], bool]


def _bank(folder: Path, content: Content) -> Path:
    found, past, strange = content
    with Bank(folder) as bank:
        for one in past:
            bank.write_night(one)
            bank.add_unshrunk(unshrunk(one))
        for one_failure, day in found:
            bank.add_failure(one_failure, SCENARIOS[day % 2])
    if strange:
        (folder / "failures" / "notes").write_text(str(len(found)))
    return folder


@settings(max_examples=25, deadline=None)
@given(contents, contents)
def test_neither_order_nor_repetition_makes_a_difference(first: Content, second: Content) -> None:
    with tempfile.TemporaryDirectory() as place:
        one, other = (_bank(Path(place, name), content) for name, content in (("1", first), ("2", second)))
        same = [_bank(Path(place, name), content) for name, content in (("3", first), ("4", second))]
        theirs = files_in(other)
        merge(one, other)
        assert files_in(other) == theirs, "the second bank is only read"
        merge(same[1], same[0])
        merged = files_in(one)
        assert merged == files_in(same[1])
        merge(one, other)
        merge(one, same[1])
        assert files_in(one) == merged
        with Bank(one) as bank:
            assert bank.failures.keys() == {found.id for found, _ in (*first[0], *second[0])}
            assert {past.id for past in bank.nights} == {past.id for past in (*first[1], *second[1])}
            assert bank.remarks == []


def test_the_first_finding_and_the_later_state_stay(tmp_path: Path) -> None:
    early, late = failure(day=1), failure(day=2)
    begun, gone_on = night(scenarios=20, ended=False), night(scenarios=40, ended=False)
    one = _bank(tmp_path / "1", ([(late, 1)], [begun], False))
    other = _bank(tmp_path / "2", ([(early, 0)], [gone_on], False))
    told = merge(one, other)
    assert (told.failures, told.nights) == (0, 1)
    with Bank(one) as bank:
        assert bank.failures[early.id].found == early.found
        assert bank.scenario(early.id) == SCENARIOS[0]
        assert bank.nights == [gone_on]


def test_what_cannot_be_merged_is_refused(tmp_path: Path) -> None:
    bank = _bank(tmp_path / "1", ([], [night()], False))
    with pytest.raises(UsageError, match="same folder"):
        merge(bank, bank)
    with pytest.raises(UsageError, match="there is no bank"):
        merge(bank, tmp_path / "nowhere")
    with Bank(tmp_path / "2"), pytest.raises(UsageError, match="another job has the bank"):
        merge(bank, tmp_path / "2")


@pytest.mark.parametrize("rest", ["; rm -rf ~", " --subject $(id)", "\nrm -rf ~", " '"])
def test_a_foreign_failure_whose_command_does_more_than_replay_it_is_put_aside(tmp_path: Path, rest: str) -> None:
    evil = msgspec.structs.replace(failure(), replay=f"cutproof replay {failure().scenario}{rest}")
    bank, other = _bank(tmp_path / "1", ([], [], False)), _bank(tmp_path / "2", ([(evil, 0)], [], False))
    (remark,) = merge(bank, other).remarks
    assert "does something else than to replay it" in remark
    with Bank(bank) as merged:
        assert merged.failures == {}
    with Bank(
        _bank(
            tmp_path / "3",
            (
                [(msgspec.structs.replace(evil, replay=f"cutproof replay {evil.scenario} --subject 'a b:C'"), 0)],
                [],
                False,
            ),
        )
    ) as sound:
        assert sound.failures


def test_a_place_in_a_foreign_file_is_never_used(tmp_path: Path) -> None:
    bank = _bank(tmp_path / "1", ([], [night()], False))
    evil = msgspec.structs.replace(failure(), scenario="../../../etc/passwd")
    other = _bank(tmp_path / "2", ([(evil, 0)], [], False))
    (other / "failures" / "x..y").mkdir()
    merge(bank, other)
    with Bank(bank) as merged:
        assert merged.scenario(evil.id) == SCENARIOS[0]
    assert {path.split("/")[0] for path in files_in(tmp_path / "1")} <= {"failures", "nights", "bank.json", "aside"}
