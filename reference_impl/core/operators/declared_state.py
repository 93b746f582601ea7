"""State that a user's function declares (OPS-4): its kind and its type."""

from __future__ import annotations

import msgspec

from ..vocabulary.errors import Refused

TYPES: dict[str, type] = {"int": int, "str": str, "bool": bool, "float": float}


class Declared(msgspec.Struct, frozen=True):
    """A state: its kind and the type of its values.  A value, a list and a map are kept by key; items and a union
    belong to the subtask and to no key."""

    kind: str
    of: str

    @property
    def in_words(self) -> str:
        return f"{self.kind} of {self.of}"

    @property
    def is_of_subtask(self) -> bool:
        return self.kind in ("items", "union")

    def fits(self, value: object) -> bool:
        """Whether a value is of this kind and type; the keys of a map are strings."""
        if self.kind == "list" or self.is_of_subtask:
            return isinstance(value, list) and all(self._is_one(item) for item in value)
        if self.kind == "map":
            return isinstance(value, dict) and all(
                isinstance(key, str) and self._is_one(item) for key, item in value.items()
            )
        return value is None or self._is_one(value)

    def _is_one(self, value: object) -> bool:
        return type(value) is TYPES[self.of]


def value_of(kind: type) -> Declared:
    """One value per key, None until it is put: of int, str, bool or float."""
    return _declared("value", kind)


def list_of(kind: type) -> Declared:
    """One list per key."""
    return _declared("list", kind)


def map_of(kind: type) -> Declared:
    """One map per key; its own keys are strings."""
    return _declared("map", kind)


def items_of(kind: type) -> Declared:
    """A list of the subtask; when the job is rescaled, its items are distributed over the new subtasks in turn."""
    return _declared("items", kind)


def union_of(kind: type) -> Declared:
    """A list of the subtask; at each restore every subtask is offered the items of all (see `Function.keeps`)."""
    return _declared("union", kind)


def _declared(kind: str, of: type) -> Declared:
    if of.__name__ not in TYPES:
        raise Refused(f"a state can be of {', '.join(TYPES)}, not of {of.__name__}")
    return Declared(kind, of.__name__)
