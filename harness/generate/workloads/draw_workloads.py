"""Draws workloads, which are trees of operators over drawn inputs, and their layouts.

A workload has one right answer (the judge's classes M and S).  If the rows of an operator
depend on the order of a key's records, each key comes from one split through FIFO channels,
never behind a join or a rebalance edge.  An idempotent sink gets one final row for each key,
whatever the order.  Operators in processing time (class W) and broadcast rules (class H) are the
exceptions: their right answer depends on the history.  Retraction records (OPS-6) retract earlier ones, and pass
count, sum and join.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ....properties.model.workload import (
    KEYED,
    SINK,
    AnyOperator,
    Batch,
    Count,
    Dedup,
    Edge,
    Filter,
    FlatMap,
    Greater,
    Input,
    InputRecord,
    Join,
    Map,
    Model,
    Node,
    Rules,
    Sum,
    Tally,
    Topology,
    Union,
    User,
    Window,
    Workload,
    is_clocked,
    is_ordered,
    window_of,
)
from ...subject.abilities import EDGES, knows
from ..choices import Choices
from .event_times import BURST, closing, draw_burst, draw_times, draw_window, known_windows
from .records import Keys, draw_keys, draw_splits

SHAPES = ("chain", "union", "join")

STATELESS: tuple[AnyOperator, ...] = (
    Map(add=1),
    Map(multiply=-2, add=3),
    Filter(),
    Filter(modulus=3, drop=1),
    FlatMap(),
)
COMMUTATIVE: tuple[AnyOperator, ...] = (Count(), Dedup())
"""keyed operators of class M"""
IN_ORDER: tuple[AnyOperator, ...] = (Sum(), Greater(), Count(tagged=True), Dedup(keys_only=False), Model())
"""keyed operators of class S"""
FINAL: tuple[AnyOperator, ...] = (Count(), Dedup())
"""operators that may stand before an idempotent sink: they have one last row for each key"""

_SUMS_AT_MOST = 2
"""sums of sums of 40-bit tags stay within 64 bits"""


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """The wishes of a template for its workload."""

    least_records: int = 16
    most_records: int = 120
    shapes: tuple[str, ...] = ("chain", "chain", "union", "join")
    least_operators: int = 0
    most_operators: int = 3
    splits: tuple[int, ...] = (1, 2, 2, 3)
    """how many splits an input has"""
    idempotent: bool = False
    operators: frozenset[str] | None = None
    """the operators that the subject knows, by the names that it declares; None: all"""
    edges: frozenset[str] = frozenset(EDGES)
    """the edges that the subject knows"""
    windows_percent: int = 25
    """how often a workload that can have a window has one"""
    clocked_percent: int = 4
    """how often a workload that can have an operator in processing time has one"""
    rules_percent: int = 25
    """how often the second of two inputs that would be joined has broadcast rules instead"""
    batches_percent: int = 10
    """how often an operator behind all keyed ones collects rows in batches, in a list state"""
    tallies_percent: int = 20
    """how many of the plain counts are tallies: counts with a union state"""
    retractions_percent: int = 10
    """how often a workload that can have retractions has some"""
    windows_in_order: bool = False
    """whether rows of windows are never rebalanced: with late records a judge would not know which went where"""
    two_phase_percent: int = 25
    """how often the maps of a job with a transactional sink are two-phase operators"""
    unbounded_percent: int = 12
    mixed_percent: int = 0
    """how often the first of two inputs is bounded and the other is not"""
    branch_percent: int = 0
    """how often an operator stands between the first of two inputs and the union where they meet"""
    enumerated_percent: int = 12
    """how often an enumerator assigns the splits, if it can"""
    apart: bool = False
    """whether inputs, or splits of one, end long before others"""
    parallelism: tuple[int, ...] = (1, 1, 2, 2, 3)
    varied_percent: int = 25
    """how often an operator has another parallelism than the others"""


MODEST_RECORDS = 60


def modest(recipe: Recipe) -> Recipe:
    """The recipe for a subject in real time, in which tasks are processes and records take time."""
    return msgspec.structs.replace(
        recipe,
        least_records=min(recipe.least_records, MODEST_RECORDS),
        most_records=min(recipe.most_records, MODEST_RECORDS),
        most_operators=min(recipe.most_operators, 2),
        parallelism=tuple(number for number in recipe.parallelism if number <= 2) or (1,),
    )


class Chain:
    """A workload that is being built: nodes are appended to the stream called `end`."""

    def __init__(self, choices: Choices, recipe: Recipe, *, ordered: bool) -> None:
        self.choices = choices
        self.recipe = recipe
        self.ordered = ordered
        self.nodes: list[Node] = []
        self.tallies = knows(recipe.operators, Tally())
        self.alike = False
        """whether all values are the same, so that a filter may drop all"""

    def known(self, menu: tuple[AnyOperator, ...]) -> list[AnyOperator]:
        """The operators of a menu that the subject knows and that are not in the workload too often."""
        kinds = [type(node.operator) for node in self.nodes]
        full: set[type[AnyOperator]] = {kind for kind in (Filter, FlatMap) if kind in kinds}
        if self.alike:
            full |= {Filter, FlatMap}
        if kinds.count(Sum) + any(issubclass(kind, Window) for kind in kinds) >= _SUMS_AT_MOST:
            full.add(Sum)
        return [op for op in menu if type(op) not in full and knows(self.recipe.operators, op)]

    def append(self, operator: AnyOperator, inputs: tuple[str, ...]) -> str:
        if operator == Count() and self.tallies and self.choices.percent(self.recipe.tallies_percent):
            operator = Tally()
        kind = _called(operator)
        same = sum(node.name.rstrip("0123456789") == kind for node in self.nodes)
        name = f"{kind}{same + 1}" if same else kind
        self.nodes.append(Node(name=name, operator=operator, inputs=inputs))
        if not isinstance(operator, (Greater, Filter, Map)):
            self.alike = operator == Dedup(keys_only=True)
        return name

    def extend(self, end: str, operators: int, *, stateful: bool = True) -> str:
        menu = STATELESS
        if stateful:
            menu += COMMUTATIVE + COMMUTATIVE + (IN_ORDER + IN_ORDER if self.ordered else ())
        for _ in range(operators):
            allowed = self.known(menu)
            if allowed:
                end = self.append(self.choices.pick(allowed), (end,))
        return end


def draw_workload(choices: Choices, recipe: Recipe) -> Workload:
    shape = choices.pick([shape for shape in recipe.shapes if is_possible(shape, recipe)] or ["chain"])
    ordered = shape != "join" and not recipe.idempotent and choices.percent(70)
    if _may_have_rules(recipe, shape) and choices.percent(recipe.rules_percent):
        return draw_ruled(choices, recipe)
    if _may_be_clocked(recipe, shape) and choices.percent(recipe.clocked_percent):
        return draw_clocked(choices, recipe, shape)
    if _may_have_window(recipe, shape) and choices.percent(recipe.windows_percent):
        return draw_windowed(choices, recipe, shape)
    if _may_retract(recipe, shape) and choices.percent(recipe.retractions_percent):
        return draw_retracting(choices, recipe, shape)
    # without a final operator a table shows each key's last row, so all rows of a key must come along one path
    in_lanes = recipe.idempotent and not any(knows(recipe.operators, operator) for operator in FINAL)
    keys = draw_keys(choices, separate=ordered or in_lanes, least_keys=5 if shape == "join" else 1)
    inputs = draw_inputs(choices, recipe, shape, keys)
    chain = Chain(choices, recipe, ordered=ordered)
    ends = tuple(source.name for source in inputs)
    operators = choices.between(recipe.least_operators, recipe.most_operators)
    waits = _may_wait(recipe) and choices.percent(recipe.batches_percent)
    operators -= waits and operators > 1
    if shape == "chain":
        end = ends[0]
    elif shape == "union":
        first, *others = ends
        if operators and recipe.branch_percent and choices.percent(recipe.branch_percent):
            first, operators = chain.extend(first, 1, stateful=not recipe.idempotent), operators - 1
        end = chain.append(Union(), (first, *others))
    else:
        left_input = chain.extend(ends[0], operators // 2, stateful=False)
        end = chain.append(Join(), (left_input, ends[1]))
        operators = operators - operators // 2 - 1
    end = chain.extend(end, operators, stateful=not recipe.idempotent)
    if recipe.idempotent and not in_lanes:
        chain.append(choices.pick(chain.known(FINAL)), (end,))
    if waits:
        end = chain.append(Batch(size=choices.pick((3, 2, 5, 8))), (end,))
        chain.extend(end, choices.between(0, int(operators < recipe.most_operators - 1)), stateful=False)
    return Workload(name=shape, inputs=inputs, nodes=tuple(chain.nodes))


def _may_wait(recipe: Recipe) -> bool:
    return not recipe.idempotent and recipe.most_operators > 0 and knows(recipe.operators, Batch())


def _may_have_window(recipe: Recipe, shape: str) -> bool:
    return shape != "join" and not recipe.idempotent and bool(known_windows(recipe.operators))


def draw_windowed(choices: Choices, recipe: Recipe, shape: str, *, sorts: tuple[str, ...] = ()) -> Workload:
    """A workload with stateless operators, a window in event time, and now and then an operator behind it."""
    keys = draw_keys(choices, separate=False)
    inputs = draw_times(choices, draw_inputs(choices, recipe, shape, keys))
    window = draw_window(choices, sorts or known_windows(recipe.operators), recipe.operators)
    inputs = closing(inputs, window)
    return Workload(name=f"windowed {shape}", inputs=inputs, nodes=_around(choices, recipe, shape, inputs, window))


def draw_clocked(choices: Choices, recipe: Recipe, shape: str) -> Workload:
    """The same with an operator in processing time instead of the window; its inputs have no event time."""
    inputs = draw_inputs(choices, recipe, shape, draw_keys(choices, separate=False))
    nodes = _around(choices, recipe, shape, inputs, draw_burst(choices))
    return Workload(name=f"clocked {shape}", inputs=inputs, nodes=nodes)


def _around(
    choices: Choices, recipe: Recipe, shape: str, inputs: tuple[Input, ...], window: AnyOperator
) -> tuple[Node, ...]:
    chain = Chain(choices, recipe, ordered=True)
    end = chain.append(Union(), tuple(source.name for source in inputs)) if shape == "union" else inputs[0].name
    end = chain.extend(end, choices.between(0, max(0, recipe.most_operators - 2)), stateful=False)
    end = chain.append(window, (end,))
    if recipe.most_operators > 1 and choices.percent(30):
        chain.extend(end, 1)
    return tuple(chain.nodes)


def _may_be_clocked(recipe: Recipe, shape: str) -> bool:
    return shape != "join" and not recipe.idempotent and knows(recipe.operators, BURST)


def _may_have_rules(recipe: Recipe, shape: str) -> bool:
    return shape == "join" and recipe.most_operators > 0 and knows(recipe.operators, Rules())


def draw_ruled(choices: Choices, recipe: Recipe) -> Workload:
    """Rows that broadcast rules change, stateless operators before both inputs, and now and then an operator behind.
    This is class H: the rules that a row meets depend on what arrived before it."""
    inputs = draw_inputs(choices, recipe, "rules", draw_keys(choices, separate=False))
    chain = Chain(choices, recipe, ordered=False)
    data, changes = (source.name for source in inputs)
    spare = recipe.most_operators - 1
    if spare > 0:
        data = chain.extend(data, choices.between(0, 1), stateful=False)
    if spare > 1:
        changes = chain.extend(changes, choices.between(0, 1), stateful=False)
    end = chain.append(Rules(), (data, changes))
    if spare > 0 and choices.percent(40):
        chain.extend(end, 1)
    return Workload(name="ruled", inputs=inputs, nodes=tuple(chain.nodes))


def _may_retract(recipe: Recipe, shape: str) -> bool:
    if recipe.idempotent or recipe.most_operators < 1:
        return False
    return knows(recipe.operators, JOIN) if shape == "join" else bool(_aggregates(recipe))


def draw_retracting(choices: Choices, recipe: Recipe, shape: str) -> Workload:
    """Records and their retractions, which pass a join or one or two operators with changelogs."""
    keys = draw_keys(choices, separate=shape != "join", least_keys=5 if shape == "join" else 1)
    inputs = draw_retractions(choices, draw_inputs(choices, recipe, shape, keys))
    chain = Chain(choices, recipe, ordered=True)
    end, *others = (source.name for source in inputs)
    around = max(0, min(recipe.most_operators, 3) - 1)
    if shape == "union":
        end = chain.append(Union(), (end, *others))
    end = chain.extend(end, choices.between(0, around), stateful=False)
    if shape == "join":
        end = chain.append(JOIN, (end, *others))
    else:
        for _ in range(choices.between(1, max(1, around))):
            end = chain.append(choices.pick(_aggregates(recipe)), (end,))
    chain.extend(end, choices.between(0, around), stateful=False)
    return Workload(name=f"retracting {shape}", inputs=inputs, nodes=tuple(chain.nodes))


def _aggregates(recipe: Recipe) -> list[AnyOperator]:
    return [operator for operator in AGGREGATES if knows(recipe.operators, operator)]


def draw_topology(choices: Choices, workload: Workload, recipe: Recipe) -> Topology:
    common = choices.pick(recipe.parallelism)
    parallelism: dict[str, int] = {}
    for name in (*(source.name for source in workload.inputs), *(node.name for node in workload.nodes), SINK):
        varied = choices.percent(recipe.varied_percent)
        parallelism[name] = choices.pick(recipe.parallelism) if varied else common
    if "hash" not in recipe.edges and "forward" in recipe.edges:  # only forward edges keep the rows of a key together
        parallelism = dict.fromkeys(parallelism, common)
    elif "hash" not in recipe.edges and recipe.idempotent:
        parallelism = dict.fromkeys(parallelism, 1)
    readers = {name: node for node in workload.nodes for name in node.inputs}
    fixed_after = _order_matters_after(workload, recipe)
    edges: list[Edge] = []
    for sender in [source.name for source in workload.inputs] + [node.name for node in workload.nodes]:
        node = readers.get(sender)
        receiver = node.name if node else SINK
        if node is not None and isinstance(node.operator, KEYED):
            how = "hash"
        elif node is not None and node.broadcast_input == sender:
            how = "broadcast"
        else:
            options = ["forward", "forward"] if parallelism[sender] == parallelism[receiver] else []
            options += ["hash"] if fixed_after[sender] else ["hash", "rebalance"]
            known = [how for how in options if how in recipe.edges] or sorted(recipe.edges - {"broadcast"})
            how = choices.pick(known)
        edges.append(Edge(sender=sender, receiver=receiver, partitioning=how))
    return Topology(parallelism=parallelism, edges=tuple(edges), key_groups=choices.pick((16, 4, 128)))


def _order_matters_after(workload: Workload, recipe: Recipe) -> dict[str, bool]:
    """By the name of an input or a node: whether its rows must stay in order by key."""
    matters: dict[str, bool] = {workload.output: recipe.idempotent}
    for node in reversed(workload.nodes):
        for name in node.inputs:
            # the final row of a count or a dedup does not depend on the order of its input
            after = matters[node.name] and not recipe.idempotent
            matters[name] = after or is_ordered(node.operator)
    window = window_of(workload)
    if window is not None and (recipe.windows_in_order or is_clocked(window.operator)):
        behind = workload.nodes[workload.nodes.index(window) :]
        matters |= {node.name: True for node in behind}
    return matters


def draw_inputs(choices: Choices, recipe: Recipe, shape: str, keys: Keys) -> tuple[Input, ...]:
    names = {"chain": ("source",), "union": ("east", "west"), "join": ("left", "right"), "rules": ("data", "changes")}[
        shape
    ]
    split_counts = [choices.pick(recipe.splits) for _ in names]
    most = min(recipe.most_records, 60) if shape == "join" else recipe.most_records
    least = min(recipe.least_records, most)
    if choices.seeded:
        low, high = choices.pick(((least, most // 4), (most // 4, most // 2), (most // 2, most)))
    else:  # fewer records exercise less, but Hypothesis shrinks by removing records
        least = low = min(1, least)
        high = most
    splits = draw_splits(choices, keys, splits=sum(split_counts), least=max(least, low), most=max(least, high))
    if recipe.apart:
        splits = _cut_short(choices, splits, split_counts[0])
    bounded = not choices.percent(recipe.unbounded_percent)
    mixed = len(names) > 1 and recipe.mixed_percent > 0 and choices.percent(recipe.mixed_percent)
    inputs: list[Input] = []
    for name, count in zip(names, split_counts, strict=True):
        mine, splits = splits[:count], splits[count:]
        inputs.append(Input(name=name, splits=tuple(mine), bounded=bounded if not mixed else name == names[0]))
    return tuple(inputs)


def _cut_short(
    choices: Choices, splits: list[tuple[InputRecord, ...]], first_input: int
) -> list[tuple[InputRecord, ...]]:
    """The splits with most records removed from those of the first input, or from one split that is not the
    last."""
    share = choices.pick((25, 10, 50, 0))
    single = choices.percent(50) or first_input == len(splits)
    short = [choices.between(0, max(0, len(splits) - 2))] if single else range(first_input)
    least = 0 if first_input == len(splits) else 1  # a join with an empty input has no rows
    return [
        records[: max(least, len(records) * share // 100)] if number in short else records
        for number, records in enumerate(splits)
    ]


def is_possible(shape: str, recipe: Recipe) -> bool:
    """Whether a subject has the operator in which the inputs of this shape meet."""
    if shape == "join":
        return not recipe.idempotent and knows(recipe.operators, Join())
    return shape == "chain" or knows(recipe.operators, Union())


def _kind(operator: AnyOperator) -> str:
    return str(type(operator).__struct_config__.tag)


def _called(operator: AnyOperator) -> str:
    """The beginning of a node's name: its kind, or a user function's name without the package's prefix."""
    if isinstance(operator, User):
        return operator.function.rpartition("/")[2]
    return _kind(operator).replace("flat-map", "flatmap")


AGGREGATES: tuple[AnyOperator, ...] = (Sum(signed=True), Count(signed=True))
JOIN = Join(signed=True)


def draw_retractions(choices: Choices, inputs: tuple[Input, ...]) -> tuple[Input, ...]:
    """The inputs with retractions, many or few, each of an earlier record of its key and split."""
    shift, mask = choices.between(0, 20), choices.pick((1, 3, 7))
    return tuple(
        replace(source, splits=tuple(with_retractions(split, shift, mask) for split in source.splits))
        for source in inputs
    )


def with_retractions(records: tuple[InputRecord, ...], shift: int, mask: int) -> tuple[InputRecord, ...]:
    """The records with retractions.  The bits of a record's tag decide whether it becomes one; it then retracts the
    newest record that is not retracted yet."""
    standing: dict[int | None, list[InputRecord]] = {}
    changed: list[InputRecord] = []
    for record in records:
        mine = standing.setdefault(record[0], [])
        if mine and record[2] >> shift & mask == 0:
            key, value, tag = mine.pop()
            changed.append((key, value, -tag))
        else:
            mine.append(record)
            changed.append(record)
    return tuple(changed)
