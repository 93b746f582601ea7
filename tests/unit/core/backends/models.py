"""State backends beside a dictionary: the same changes, and what there must be then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from cutproof.reference_impl.core.backends.heap import HeapState
from cutproof.reference_impl.core.backends.keyed_state import FiledState, KeyedState
from cutproof.reference_impl.core.backends.keys import as_bytes
from cutproof.reference_impl.core.backends.layouts import (
    BURSTS,
    DECLARED,
    PAIR,
    PANES,
    ROWS,
    SEEN,
    SINGLE,
    Layout,
)
from cutproof.reference_impl.core.decisions.tasks import Copying
from cutproof.reference_impl.core.vocabulary.formats import encode
from cutproof.reference_impl.core.vocabulary.state import TaskState
from cutproof.reference_impl.core.vocabulary.views import View

Change = tuple[str, Any, Any]
"""what is done, a key and a value"""

keys = st.none() | st.integers(-3, 6)
numbers = st.none() | st.integers(-9, 9)
VALUES: dict[str, tuple[Layout, st.SearchStrategy[Any], st.SearchStrategy[Any]]] = {
    "single": (SINGLE, keys, numbers),
    "seen": (SEEN, keys, st.none()),
    "pair": (PAIR, keys, st.tuples(numbers, st.integers(0, 9))),
    "rows": (
        ROWS,
        st.tuples(st.integers(0, 1), keys),
        st.lists(st.tuples(numbers, st.integers(0, 9)), min_size=1, max_size=3),
    ),
    "panes": (
        PANES,
        st.tuples(keys, st.integers(0, 5)),
        st.tuples(st.integers(), numbers, st.integers(0, 9), st.integers(0, 9)),
    ),
    "bursts": (BURSTS, keys, st.tuples(*[st.integers(0, 9)] * 5)),
    "declared": (DECLARED, st.tuples(keys, st.sampled_from(("", "a", "b"))), st.none()),
}


def changes(name: str) -> st.SearchStrategy[list[Change]]:
    _, some_keys, values = VALUES[name]
    one = st.tuples(st.sampled_from(("put", "put", "put", "delete", "begin", "end", "view")), some_keys, values)
    return st.lists(one, max_size=40)


def heap(layout: Layout) -> HeapState:
    return HeapState(layout, Copying())


def assert_it_is_a_dictionary(
    open_state: Callable[[Layout], KeyedState], name: str, some: list[Change]
) -> list[tuple[View, dict[Any, Any]]]:
    """Make the changes in a state and in a dictionary, and compare the two; returns the views, and what each must hold.

    Compactions begin and end meanwhile.  Each view restores what there was from its entries.
    """
    layout = VALUES[name][0]
    state, model = open_state(layout), dict[Any, Any]()
    views: list[tuple[View, dict[Any, Any]]] = []
    merging = False
    for what, key, value in some:
        if what == "put":
            state[key] = model[key] = _fitting(name, key, value)
        elif what == "delete":
            assert state.pop(key, "none") == model.pop(key, "none")
        elif what == "view":
            views.append((state.snapshot(), dict(model)))
        elif isinstance(state, FiledState):
            if what == "begin":
                merging = state.begin_compaction() or merging
            elif merging:
                state.end_compaction()
                merging = False
        assert (key in state, state.get(key, "none")) == (key in model, model.get(key, "none"))
    in_order = sorted(model, key=as_bytes) if isinstance(state, FiledState) else list(model)
    assert (dict(state.items()), list(state), len(state)) == (model, in_order, len(model))
    for view, then in views:
        expected = heap(layout)
        expected.update(reversed(then.items()))
        assert _canonical(view) == _canonical(expected.snapshot())
        again = open_state(layout)
        again.restore(TaskState(entries=view.entries(), panes=view.panes(), held=view.held()))
        assert dict(again) == then
    return views


def _fitting(name: str, key: Any, value: Any) -> Any:
    return value if name != "declared" else (7 if key[1] == "" else '"text"')


def _canonical(view: View) -> bytes:
    """The bytes of a snapshot: the same from each backend, in whatever order the keys came."""
    return encode(TaskState(entries=view.entries(), panes=view.panes(), held=view.held()))
