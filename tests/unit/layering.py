"""The rules of the house, each a function from (path, source) to the lines that break it.

Kept apart from the tests so that each rule can be shown a planted offence as
well as the real sources.  Paths are relative to the repository, with slashes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter

ROOMS = ("reference_impl", "faults", "properties", "reports", "harness")

MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "reference_impl": (),
    "faults": (),
    "properties": (),
    "reports": ("properties", "faults.plan"),
    "harness": ("reference_impl", "faults", "properties", "reports"),
}
"""Room: what it may import of the package besides itself."""

ENGINE_MAY_BE_IMPORTED_IN = "harness/reference_engine/"
"""Of the harness: all else of it serves another engine as well."""
PROGRAMS_OF_USERS = ("harness/user_pipelines/shipped/", "harness/subject_kit/template/")
"""They are started as processes, or copied into a user's folder; they use the package from outside."""
WITHOUT_CIRCLES = ("__init__.py", "harness/", "properties/", "reference_impl/", "reports/", "faults/")
CORE = "reference_impl/core/"
CORE_MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "vocabulary": (),
    "job": ("vocabulary",),
    "decisions": ("vocabulary", "job"),
    "backends": ("vocabulary", "decisions"),
    "operators": ("vocabulary", "job", "backends"),
    "protocol": ("vocabulary", "job", "decisions", "operators"),
    "extensions": ("vocabulary", "job", "decisions", "backends", "operators", "protocol"),
    "lifecycle": ("vocabulary", "job", "decisions", "protocol", "extensions"),
}
"""Folder of the core: the other folders whose files its own may import, types included; each of them stands before it
here.  Decisions know no machine."""
NAMES = ("reference_impl/", ENGINE_MAY_BE_IMPORTED_IN)
SEPARATORS = "->/#|@"
"""What joins the parts of a name; `>` is that of a channel, `#` of a pooled transaction, `|` of a prepared one."""
NAMES_ARE_PARSED_IN: dict[str, str] = {
    "reference_impl/core/vocabulary/ids.py": "->",
    "reference_impl/core/vocabulary/transactions.py": "/#",
    "reference_impl/driver/durable/spills.py": "/",
    "reference_impl/processes/disk/durable.py": "@",
    "reference_impl/processes/disk/files.py": "-/",
    "reference_impl/processes/stores/database_sessions.py": "|",
    "reference_impl/defects/sinks.py": "-",
    "reference_impl/defects/snapshots/claims.py": "/",
    "reference_impl/defects/snapshots/incremental.py": "/",
    "harness/reference_engine/snapshots/changes.py": "/",
}
"""File: the separators at which it takes names apart."""
TEXTS_OF_ERRORS_ARE_READ_IN: dict[str, str] = {
    "harness/chaos/records.py": "msgspec has one error for JSON that is cut off and for any other",
    "harness/scenario/files.py": "the same",
    "harness/subject/names.py": "a TypeError does not have the name of the unexpected argument as a field",
    "harness/user_pipelines/feeding/table.py": "SQLite has one code for a missing table and for what is no SQL",
    "harness/user_pipelines/output/formats.py": "the same",
    "properties/checking/sources/csv_files.py": "the csv module has one error",
    "properties/checking/sources/postgres.py": "libpq has only texts for what a server says before a session begins",
    "properties/spark/checking/inputs.py": "Java's exception has Spark's error condition in its text",
    "properties/spark/checking/sources.py": "Spark passes a worker's exception on as the text of its traceback",
}
"""Why no type or code can be read there instead; each is an error of a library."""
ASKING = frozenset(
    {"startswith", "endswith", "find", "index", "count", "match", "search", "fullmatch", "findall"}
    | {"partition", "rpartition", "removeprefix", "removesuffix"}
)

IDS_FROM_1 = ("CheckpointId", "AttemptId")
"""They are counted from 1 on."""
HYPOTHESIS_MAY_LIVE_IN = ("harness/generate", "harness/search/search", "harness/pytest_plugin/decorator")
WORLDLY = frozenset(
    {"asyncio", "concurrent", "datetime", "importlib", "io", "logging", "multiprocessing", "os", "pathlib", "pkgutil"}
    | {"random", "runpy", "secrets", "shutil", "signal", "socket", "subprocess", "sys", "tempfile", "threading"}
    | {"time", "uuid"}
)
"""Modules through which a clock, a die, a disk or another thread gets in, or a module that no rule sees."""
UNSTABLE_CALLS = frozenset({"hash", "id", "open", "print", "input", "eval", "exec", "__import__"})
ORDER_BLIND = frozenset({"sorted", "set", "frozenset", "any", "all", "sum", "min", "max", "len"})
"""Callables whose result does not depend on the order in which they are fed."""
LONGEST_FILE = 600

Rule = Callable[[str, str], list[str]]
RuleOverAll = Callable[[Mapping[str, str]], list[str]]
"""From the sources by their paths: what no single file shows."""


@cache  # most rules ask it of most files
def imported(path: str, source: str) -> tuple[tuple[int, str], ...]:
    """(line, dotted name) of everything a file imports; names inside the package as `cutproof.room.module`."""
    return tuple(_imported(path, source))


def _imported(path: str, source: str) -> Iterator[tuple[int, str]]:
    folder = ["cutproof", *path.split("/")[:-1]]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = folder[: len(folder) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{stem}.{alias.name}"


def _within(name: str, stem: str) -> bool:
    return name == stem or name.startswith(stem + ".")


def rooms_import_only_what_they_may(path: str, source: str) -> list[str]:
    room = path.split("/")[0]
    if room not in ROOMS or path.startswith(PROGRAMS_OF_USERS):
        return []
    allowed = [f"cutproof.{name}" for name in (room, *MAY_IMPORT[room])]
    return [
        f"{path}:{line} imports {name}"
        for line, name in imported(path, source)
        if _within(name, "cutproof") and not any(_within(name, stem) for stem in allowed)
    ]


def rooms_import_each_other_relatively(path: str, source: str) -> list[str]:
    if path.split("/")[0] not in ROOMS or path.startswith(PROGRAMS_OF_USERS):
        return []
    return [
        f"{path}:{node.lineno} names the package absolutely"
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.Import) and any(_within(alias.name, "cutproof") for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and not node.level and _within(node.module or "", "cutproof"))
    ]


def nobody_imports_tests_or_everything(path: str, source: str) -> list[str]:
    return [
        f"{path}:{line} imports {name}"
        for line, name in imported(path, source)
        if name.endswith(".*") or (path.split("/")[0] in ROOMS and name.removeprefix("cutproof.").startswith("tests"))
    ]


def only_the_reference_engine_folder_imports_the_engine(path: str, source: str) -> list[str]:
    if not path.startswith("harness/") or path.startswith(ENGINE_MAY_BE_IMPORTED_IN):
        return []
    return [
        f"{path}:{line} imports {name}"
        for line, name in imported(path, source)
        if _within(name, "cutproof.reference_impl")
    ]


def folders_of_the_core_import_only_what_they_may(path: str, source: str) -> list[str]:
    if not path.startswith(CORE) or path.count("/") < 3:
        return []
    folder = path.removeprefix(CORE).split("/")[0]
    allowed = (folder, *CORE_MAY_IMPORT[folder])
    stems = [f"cutproof.reference_impl.core.{name}" for name in allowed]
    return [
        f"{path}:{line} imports {name}"
        for line, name in imported(path, source)
        if _within(name, "cutproof.reference_impl") and not any(_within(name, stem) for stem in stems)
    ]


def only_the_spark_room_imports_pyspark(path: str, source: str) -> list[str]:
    if path.startswith(PROGRAMS_OF_USERS):
        return []
    if path.startswith("properties/spark/") or path.split("/")[0] not in (*ROOMS, "__init__.py"):
        return []
    return [
        f"{path}:{line} imports {name}"
        for line, name in imported(path, source)
        if _within(name, "pyspark")
        or _within(name, "py4j")
        or (path.startswith("properties/") and _within(name, "cutproof.properties.spark"))
    ]


def only_the_search_imports_hypothesis(path: str, source: str) -> list[str]:
    if path.startswith(HYPOTHESIS_MAY_LIVE_IN) or path.split("/")[0] not in (*ROOMS, "__init__.py"):
        return []
    return [f"{path}:{line} imports {name}" for line, name in imported(path, source) if _within(name, "hypothesis")]


def _separator(call: ast.Call, constants: Mapping[str, object]) -> object:
    """At what a call of `split` or the like takes a text apart; None if the file does not say it."""
    given = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "sep")]
    if given and isinstance(given[0], ast.Name):
        return constants.get(given[0].id)
    return given[0].value if given and isinstance(given[0], ast.Constant) else None


def names_are_parsed_in_few_files(path: str, source: str) -> list[str]:
    """Whoever has the job's graph asks it for the operator of a task, or for the ends of a channel."""
    if not path.startswith(NAMES):
        return []
    tree = ast.parse(source)
    constants = {
        ast.unparse(target): node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
    }
    refused = set(SEPARATORS) - set(NAMES_ARE_PARSED_IN.get(path, ""))
    return [
        f"{path}:{node.lineno} takes a name apart"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("partition", "rpartition", "split", "rsplit")
        and _separator(node, constants) in refused
    ]


def _is_text_of(node: ast.AST, errors: set[str], texts: set[str]) -> bool:
    """Whether an expression is made of what an error says; not an object that has it, nor its length."""
    match node:
        case ast.Call(func=ast.Name(id="str" | "repr" | "one_line"), args=[ast.Name(id=name)]):
            return name in errors
        case ast.Call(func=ast.Name()):
            return False
        case ast.FormattedValue(value=ast.Name(id=name)) if name in errors:
            return True
        case ast.Attribute(value=ast.Name(id=name), attr="args") if name in errors:
            return True
        case ast.Name(id=name):
            return name in texts
    return any(_is_text_of(one, errors, texts) for one in ast.iter_child_nodes(node))


def _asks(node: ast.AST, errors: set[str], texts: set[str]) -> bool:
    """Whether an expression depends on whether a text has some form."""
    match node:
        case ast.Compare(left=left, comparators=others):
            return any(_is_text_of(one, errors, texts) for one in (left, *others))
        case ast.Call(func=ast.Attribute(value=value, attr=name), args=arguments) if name in ASKING:
            return any(_is_text_of(one, errors, texts) for one in (value, *arguments))
    return False


def nothing_is_decided_by_the_text_of_an_error(path: str, source: str) -> list[str]:
    """An error's wording is free to change, so whoever has to know which one it is looks at its type or a field."""
    if not path.startswith(ROOMS) or path.startswith(PROGRAMS_OF_USERS) or path in TEXTS_OF_ERRORS_ARE_READ_IN:
        return []
    found = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        nodes = list(ast.walk(function))
        errors = {"error", *(node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name)}
        texts: set[str] = set()
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_text_of(value, errors, texts):
                    texts.add(name)
        found += [
            f"{path}:{node.lineno} asks what an error says"
            for node in nodes
            if isinstance(node, ast.expr) and _asks(node, errors, texts)
        ]
    return list(dict.fromkeys(found))


def _is_pure(path: str) -> bool:
    pure = ("core", "batch", "driver", "simulated", "defects")
    return path.startswith(tuple(f"reference_impl/{room}/" for room in pure))


def pure_code_imports_nothing_worldly(path: str, source: str) -> list[str]:
    if not _is_pure(path):
        return []
    # Seeded choices need a generator; that one file is the port through which every choice passes.
    allowed = {"random"} if path == "reference_impl/driver/perturbations.py" else set()
    return [
        f"{path}:{line} imports {name}"
        for line, name in imported(path, source)
        if name.split(".")[0] in WORLDLY - allowed
    ]


def pure_code_calls_nothing_unstable(path: str, source: str) -> list[str]:
    if not _is_pure(path):
        return []
    return [
        f"{path}:{node.lineno} calls {node.func.id}()"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in UNSTABLE_CALLS
    ]


def _names_set(annotation: ast.expr | None) -> bool:
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    return isinstance(annotation, ast.Name) and annotation.id in ("set", "frozenset", "Set", "AbstractSet")


def _makes_set(node: ast.AST, known: set[str]) -> bool:
    if isinstance(node, (ast.Set, ast.SetComp)):
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("set", "frozenset")
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitOr, ast.BitAnd, ast.Sub, ast.BitXor)):
        return _makes_set(node.left, known) or _makes_set(node.right, known)
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in known


def _known_sets(tree: ast.Module) -> set[str]:
    """Names and attributes that are annotated as sets or assigned one, anywhere in the file."""
    known: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and _names_set(node.annotation):
            known.add(node.arg)
        elif isinstance(node, ast.AnnAssign) and _names_set(node.annotation):
            known.update({ast.unparse(node.target), f"self.{ast.unparse(node.target)}"})
        elif isinstance(node, ast.Assign) and _makes_set(node.value, set()):
            known.update(ast.unparse(target) for target in node.targets)
    return known


def pure_code_iterates_no_set(path: str, source: str) -> list[str]:
    """A heuristic: loops, comprehensions, list(), tuple(), iter(), * and pop() over what is known to be a set."""
    if not _is_pure(path):
        return []
    tree = ast.parse(source)
    known = _known_sets(tree)
    blind = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ORDER_BLIND
        for argument in node.args
    }
    found = []
    for node in ast.walk(tree):
        fed: list[ast.expr] = []
        if isinstance(node, (ast.For, ast.AsyncFor)):
            fed = [node.iter]
        elif isinstance(node, (ast.ListComp, ast.DictComp, ast.GeneratorExp)) and id(node) not in blind:
            fed = [generator.iter for generator in node.generators]
        elif isinstance(node, ast.Starred):
            fed = [node.value]
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple", "iter")
        ):
            fed = list(node.args)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "pop":
            fed = [node.func.value]
        found += [f"{path}:{each.lineno} iterates a set" for each in fed if _makes_set(each, known)]
    return found


def _is_sentinel(value: ast.expr | None) -> bool:
    """Whether it is "" or a negative number."""
    if isinstance(value, ast.UnaryOp):
        return isinstance(value.op, ast.USub) and isinstance(value.operand, ast.Constant)
    return isinstance(value, ast.Constant) and value.value == ""


def fields_of_the_core_have_no_sentinels(path: str, source: str) -> list[str]:
    """No field has "" or a negative number as its default, and no id is 0: None, or a type, says that there is none."""
    if not path.startswith(CORE):
        return []
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            fields = (one for one in node.body if isinstance(one, ast.AnnAssign))
            found += [f"{path}:{one.lineno} has a sentinel as default" for one in fields if _is_sentinel(one.value)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IDS_FROM_1:
            none = [one for one in node.args if _is_sentinel(one) or (isinstance(one, ast.Constant) and one.value == 0)]
            found += [f"{path}:{node.lineno} makes an id that nothing has" for _ in none]
    return found


def no_file_is_too_long(path: str, source: str) -> list[str]:
    lines = source.count("\n")
    return [f"{path} has {lines} lines"] if lines > LONGEST_FILE else []


def _module(path: str) -> str:
    return f"cutproof/{path}".removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _home(name: str, paths: Mapping[str, str]) -> str | None:
    """The path of the module that an imported name is, or is of; `paths` are those of modules."""
    return paths.get(name) or paths.get(name.rpartition(".")[0])


def _circle(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """One circle, if there is any."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return ["in a circle: " + " imports ".join(reversed(error.args[1]))]
    return []


def no_modules_import_each_other_in_a_circle(sources: Mapping[str, str]) -> list[str]:
    """Imports inside functions and for types alone count as well."""
    paths = {_module(path): path for path in sources if path.startswith(WITHOUT_CIRCLES)}
    imports: dict[str, list[str]] = {}
    for path in paths.values():
        homes = [_home(name, paths) for _, name in imported(path, sources[path])]
        imports[path] = [home for home in homes if home is not None and home != path]
    return _circle(imports)


def folders_of_the_core_may_import_each_other_in_no_circle(sources: Mapping[str, str]) -> list[str]:
    """What the table allows, whatever the sources import."""
    return _circle(CORE_MAY_IMPORT)


def folders_of_the_core_import_each_other_in_no_circle(sources: Mapping[str, str]) -> list[str]:
    """Of what lies in one folder, files as well as folders, nothing imports the other in a circle, whichever files of
    the folders do it."""
    paths = {_module(path): path for path in sources if path.startswith(CORE)}
    imports: dict[str, list[str]] = {}
    for path in paths.values():
        for _, name in imported(path, sources[path]):
            home = _home(name, paths)
            if home is not None and home != path:
                one, other = _where_they_part(path, home)
                imports.setdefault(one, []).append(other)
    return _circle(imports)


def _where_they_part(one: str, other: str) -> tuple[str, str]:
    """The first folder, or file, on the way to each of two paths that is not on the way to the other."""
    ones, others = one.split("/"), other.split("/")
    common = next(number for number, (a, b) in enumerate(zip(ones, others, strict=False)) if a != b)
    return "/".join(ones[: common + 1]), "/".join(others[: common + 1])


RULES: tuple[Rule, ...] = (
    rooms_import_only_what_they_may,
    rooms_import_each_other_relatively,
    nobody_imports_tests_or_everything,
    only_the_reference_engine_folder_imports_the_engine,
    folders_of_the_core_import_only_what_they_may,
    only_the_spark_room_imports_pyspark,
    only_the_search_imports_hypothesis,
    names_are_parsed_in_few_files,
    nothing_is_decided_by_the_text_of_an_error,
    pure_code_imports_nothing_worldly,
    pure_code_calls_nothing_unstable,
    pure_code_iterates_no_set,
    fields_of_the_core_have_no_sentinels,
    no_file_is_too_long,
)

RULES_OVER_ALL: tuple[RuleOverAll, ...] = (
    no_modules_import_each_other_in_a_circle,
    folders_of_the_core_may_import_each_other_in_no_circle,
    folders_of_the_core_import_each_other_in_no_circle,
)
