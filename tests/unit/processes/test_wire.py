"""The wire: what goes in comes out, under any cutting into pieces; nothing else ever does."""

from __future__ import annotations

import contextlib
import functools
import struct
import types
import typing
from collections.abc import Callable
from enum import Enum
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cutproof.reference_impl.core.vocabulary.ids import AttemptId
from cutproof.reference_impl.core.vocabulary.messages import Record
from cutproof.reference_impl.processes.network import frames
from cutproof.reference_impl.wire import HEADER, LIMIT, VERSION, Codec, Reader, WireError

UNIONS = {"data": frames.DataFrame, "control": frames.ControlFrame, "supervision": frames.SupervisionFrame}
KINDS = {name: typing.get_args(union) for name, union in UNIONS.items()}
SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**63), 2**63 - 1),
    str: st.text(max_size=8),
    bool: st.booleans(),
    type(None): st.none(),
}


@functools.cache
def anything(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type that a frame can have, structs with every field drawn."""
    arguments = typing.get_args(kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = typing.get_type_hints(kind)
        # deferred: a cause may hold another cause
        return st.builds(kind, **{field: later(hint) for field, hint in fields.items()})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    if isinstance(kind, typing.NewType):
        return anything(kind.__supertype__)
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        return st.one_of(*map(anything, arguments))
    origin = typing.get_origin(kind)
    if origin is dict:
        return st.dictionaries(anything(arguments[0]), anything(arguments[1]), max_size=2)
    if origin is list or (origin is tuple and arguments[-1] is ...):
        return st.lists(anything(arguments[0]), max_size=2).map(origin)
    if origin is tuple:
        return st.tuples(*map(anything, arguments))
    return SIMPLE[kind]


def later(kind: Any) -> st.SearchStrategy[Any]:
    return st.deferred(lambda: anything(kind))


def frame_of(union: str) -> st.SearchStrategy[Any]:
    return anything(UNIONS[union])


def framed(body: bytes) -> bytes:
    return HEADER.pack(VERSION, len(body)) + body


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


def opened() -> frames.Open:
    return frames.Open(stamp=1, channel="source-0>count-1", attempt=AttemptId(1))


@pytest.mark.parametrize(("union", "kind"), [(union, kind) for union, kinds in KINDS.items() for kind in kinds])
def test_every_type_of_frame_comes_out_as_it_went_in(union: str, kind: type) -> None:
    codec: Codec[Any] = Codec(UNIONS[union])

    @settings(max_examples=20)
    @given(anything(kind))
    def comes_back(frame: Any) -> None:
        assert Reader(codec).feed(codec.encode(frame)) == [frame]

    comes_back()


@pytest.mark.parametrize("union", UNIONS)
def test_frames_come_out_in_order_however_the_stream_is_cut(union: str) -> None:
    codec: Codec[Any] = Codec(UNIONS[union])

    @given(st.lists(frame_of(union), max_size=5), st.lists(st.integers(0, 2000), max_size=10))
    def comes_back(sent: list[Any], cuts: list[int]) -> None:
        reader = Reader(codec)
        stream = b"".join(map(codec.encode, sent))
        got = [frame for piece in pieces(stream, cuts) for frame in reader.feed(piece)]
        reader.end()
        assert got == sent
        assert reader.pending == 0

    comes_back()


def test_a_frame_may_come_byte_by_byte() -> None:
    codec: Codec[Any] = Codec(frames.DataFrame)
    reader = Reader(codec)
    data = codec.encode(opened())

    got = [reader.feed(data[place : place + 1]) for place in range(len(data))]

    assert got == [[]] * (len(data) - 1) + [[opened()]]


def test_pending_counts_the_bytes_of_the_unfinished_frame_only() -> None:
    codec: Codec[Any] = Codec(frames.DataFrame)
    reader = Reader(codec)
    data = codec.encode(opened())

    reader.feed(data + data[:7])

    assert reader.pending == 7


def test_a_stream_that_ends_within_a_frame_is_refused() -> None:
    codec: Codec[Any] = Codec(frames.DataFrame)
    reader = Reader(codec)
    reader.feed(codec.encode(opened())[:-1])

    with pytest.raises(WireError, match="ended within a frame"):
        reader.end()


def test_another_version_is_refused_by_its_first_byte() -> None:
    reader: Reader[Any] = Reader(Codec(frames.DataFrame))

    with pytest.raises(WireError, match="speaks version 1"):
        reader.feed(bytes([VERSION + 1]))


def test_a_frame_that_is_too_long_is_refused_before_it_is_there() -> None:
    reader: Reader[Any] = Reader(Codec(frames.DataFrame))

    with pytest.raises(WireError, match="is announced"):
        reader.feed(HEADER.pack(VERSION, LIMIT + 1))
    assert reader.pending == 0


def test_nothing_too_long_is_sent() -> None:
    codec: Codec[Any] = Codec(frames.DataFrame)

    with pytest.raises(WireError, match="too long"):
        codec.encode(frames.Refused(stamp=1, reason="x" * (LIMIT + 1)))


def test_a_codec_may_have_a_limit_of_its_own() -> None:
    codec: Codec[Any] = Codec(frames.DataFrame, 100)
    longer: Codec[Any] = Codec(frames.DataFrame)
    refused = frames.Refused(stamp=1, reason="x" * 101)

    with pytest.raises(WireError, match="too long: it can have 100"):
        codec.encode(refused)
    with pytest.raises(WireError, match="at most 100 are taken"):
        Reader(codec).feed(longer.encode(refused))


@pytest.mark.parametrize("value", [2**70, object()])
def test_a_value_that_has_no_bytes_is_refused_when_it_is_sent(value: Any) -> None:
    codec: Codec[Any] = Codec(frames.DataFrame)

    with pytest.raises(WireError, match="a Data cannot be put on the wire"):
        codec.encode(frames.Data(stamp=1, element=Record(value, 0, 0, 0, 0)))


def test_after_a_bad_frame_nothing_is_believed() -> None:
    codec: Codec[Any] = Codec(frames.DataFrame)
    reader = Reader(codec)
    with pytest.raises(WireError):
        reader.feed(b"\xff")

    with pytest.raises(WireError):
        reader.feed(codec.encode(opened()))
    with pytest.raises(WireError):
        reader.end()


def test_a_frame_of_another_conversation_is_refused() -> None:
    sent = Codec[Any](frames.ControlFrame).encode(frames.Heartbeat(stamp=1))

    with pytest.raises(WireError, match="Invalid value 'Heartbeat'"):
        Reader(Codec[Any](frames.DataFrame)).feed(sent)


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("a wrong type", ["Accepted", 1, "seven"]),
        ("a missing field", ["Open", 1]),
        ("no tag", [1, 2]),
        ("no frame at all", None),
        ("a record with a text as its key", ["Data", 1, ["Record", "k", 0, 0, 0, 0]]),
    ],
)
def test_wrong_types_are_refused_in_one_line(what: str, value: Any) -> None:
    with pytest.raises(WireError) as refusal:
        Reader(Codec[Any](frames.DataFrame)).feed(framed(msgspec.msgpack.encode(value)))

    assert "is not understood" in str(refusal.value), what
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x93\xa4Open\x01\xa2\xff\xff",  # not UTF-8
        b"\x93\xa9Heartbeat\x01" + b"\x91" * 100_000,  # very deep
        b"\x94\xa6Submit\x01\x01\x01\x01\xdd\xff\xff\xff\xff",  # a tuple of four thousand million
        b"\x93\xa4Open\x01\xdb\xff\xff\xff\xff",  # a text of as many bytes
        msgspec.msgpack.encode(["Heartbeat", 1]) + b"more",
    ],
)
def test_hostile_bodies_are_refused(body: bytes) -> None:
    for union in UNIONS.values():
        with pytest.raises(WireError):
            Reader(Codec[Any](union)).feed(framed(body))


def digest(union: str) -> Callable[[bytes, list[int]], list[object]]:
    """Feeds bytes in pieces; nothing comes out but frames of the union or a WireError, and little is held."""
    codec: Codec[Any] = Codec(UNIONS[union])

    def feed(data: bytes, cuts: list[int]) -> list[object]:
        reader = Reader(codec)
        frames: list[object] = []
        with contextlib.suppress(WireError):  # refused: nothing else may be raised
            for piece in pieces(data, cuts):
                frames.extend(reader.feed(piece))
            reader.end()
        assert reader.pending <= len(data)
        return frames

    return feed


@pytest.mark.parametrize("union", UNIONS)
def test_random_bytes_are_frames_or_are_refused(union: str) -> None:
    feed = digest(union)

    @settings(max_examples=300)
    @given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=4), st.booleans())
    @example(b"\x01\x00\x00\x00\x00", [], False)
    def survives(data: bytes, cuts: list[int], as_body: bool) -> None:
        frames = feed(framed(data) if as_body else data, cuts)
        assert all(isinstance(frame, KINDS[union]) for frame in frames)

    survives()


@pytest.mark.parametrize("union", UNIONS)
def test_mutated_frames_are_frames_or_are_refused(union: str) -> None:
    codec: Codec[Any] = Codec(UNIONS[union])
    feed = digest(union)
    change = st.tuples(st.integers(0, 10_000), st.integers(0, 255), st.sampled_from(["set", "drop", "insert"]))

    @settings(max_examples=300)
    @given(st.lists(frame_of(union), min_size=1, max_size=3), st.lists(change, min_size=1, max_size=6), st.booleans())
    def survives(sent: list[Any], changes: list[tuple[int, int, str]], keeps_length: bool) -> None:
        data = bytearray(b"".join(map(codec.encode, sent)))
        for place, byte, how in changes:
            _mutate(data, place, byte, how)
        if keeps_length and len(data) > HEADER.size:
            struct.pack_into(">BI", data, 0, VERSION, len(data) - HEADER.size)
        frames = feed(bytes(data), [3])
        assert all(isinstance(frame, KINDS[union]) for frame in frames)

    survives()


def _mutate(data: bytearray, place: int, byte: int, how: str) -> None:
    place %= len(data) + 1
    if how == "insert":
        data.insert(place, byte)
    elif place < len(data) and how == "set":
        data[place] = byte
    elif place < len(data):
        del data[place]


def test_many_frames_in_one_piece_take_time_by_their_number_only() -> None:
    codec: Codec[Any] = Codec(frames.DataFrame)
    one = codec.encode(frames.Data(stamp=1, element=Record(1, 2, 3, 4, 5)))
    reader = Reader(codec)

    got = reader.feed(one * 100_000)

    assert len(got) == 100_000
    assert reader.pending == 0
