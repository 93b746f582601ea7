"""The options that verbs share, and how settings become the defaults of options."""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, NoReturn

from ....properties.spark.session.masters import FORMS, is_master
from ...runtime.config import Setting, Settings
from ...runtime.exit_codes import UsageError
from ...runtime.progress import Progress, Silent, for_stream

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off", ""})


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are UsageErrors: one line, exit code 2."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        kwargs.setdefault("allow_abbrev", False)
        super().__init__(*args, **kwargs)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see `{self.prog} --help`")

    @property
    def options(self) -> dict[str, argparse.Action]:
        """The long options, by their names without the two dashes."""
        actions = self._actions
        return {name.removeprefix("--"): one for one in actions for name in one.option_strings if name[:2] == "--"}


def duration(text: str) -> float:
    """Seconds: `90`, `60s`, `5m`, `1.5h`, `500ms`."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or (seconds := float(match[1]) * _SECONDS[match[2] or "s"]) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write 60s, 5m or 1h")
    return seconds


def duration_or_none(text: str) -> float:
    """Seconds, as `duration` reads them; `0` is no time at all."""
    return 0.0 if text.strip() in ("0", "0s") else duration(text)


def count(text: str) -> int:
    """A whole number, 1 or more."""
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def seed(text: str) -> int:
    """A whole number, 0 or more."""
    if not text.strip().isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 0 or more")
    return int(text)


def printed(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """The group of options that control what is printed; every verb has it, some with an option of their own."""
    title = "what is printed"
    known = (group for group in parser._action_groups if group.title == title)
    return next(known, None) or parser.add_argument_group(title)


def add_common(parser: argparse.ArgumentParser) -> None:
    """`--json` and `--quiet`, which every verb takes."""
    group = printed(parser)
    group.add_argument(
        "--json",
        action="store_true",
        help="one JSON object on standard output and nothing else there; text for people goes to standard error",
    )
    group.add_argument("--quiet", action="store_true", help="print only errors, and no progress")


def progress_of(options: argparse.Namespace) -> AbstractContextManager[Progress]:
    """Progress for a verb's work: a line on a terminal, nothing in a pipe."""
    return for_stream(quiet=options.quiet) or contextlib.nullcontext(Silent())


def refuse_for_system(what: str, given: Mapping[str, object], kind: str = "a system of processes and channels") -> None:
    """Raise UsageError for options that do not apply to an example's kind of workload."""
    for option, value in given.items():
        if value:
            raise UsageError(f"{what} is {kind}, to which {option} does not apply; leave it out")


def add_subject(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--subject",
        metavar="NAME",
        default="simulated",
        help="the engine: `simulated` (the reference engine in virtual time), `processes` (the same engine "
        "as operating system processes), or package.module:NAME of your own Subject, or of a callable that returns "
        "one (default: simulated)",
    )
    parser.add_argument(
        "--defect", metavar="ID", help="plant a known defect in the engine first; `cutproof defects list` names them"
    )
    add_functions(parser)


def master(text: str) -> str:
    """The URL of a Spark master."""
    if not is_master(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no Spark master; write {FORMS}")
    return text


def add_master(parser: argparse._ActionsContainer, what: str) -> None:
    """`--master`; `what` says what the cluster does."""
    parser.add_argument("--master", metavar="URL", type=master, help=f"{what}: {FORMS}")


def add_functions(parser: argparse._ActionsContainer) -> None:
    """`--function`, for every verb that runs or judges a user's workload."""
    parser.add_argument(
        "--function",
        metavar="NAME",
        dest="functions",
        action="append",
        default=[],
        help="an operator of your own in the workload: package.module:NAME of a cutproof.UserFunction; may be repeated",
    )


def apply_settings(parser: Parser, settings: Settings) -> None:
    """Make settings the defaults of a verb's options; settings of other verbs are ignored."""
    by_name = parser.options
    for name, setting in settings.items():
        if name in by_name:
            action = by_name[name]
            parser.set_defaults(**{action.dest: _converted(name, action, setting)})


def _converted(name: str, action: argparse.Action, setting: Setting) -> object:
    value = setting.value
    try:
        if action.nargs == 0:
            return _truth(value)
        if isinstance(value, bool):
            raise argparse.ArgumentTypeError("it takes a value, not true or false")
        converted = action.type(str(value)) if callable(action.type) else str(value)
    except (argparse.ArgumentTypeError, ValueError) as error:
        raise UsageError(f"{setting.source}: {name}: {error}") from error
    if action.choices is not None and converted not in action.choices:
        raise UsageError(f"{setting.source}: {name}: {value!r} is none of {', '.join(map(str, action.choices))}")
    return [converted] if isinstance(action, argparse._AppendAction) else converted


def _truth(value: object) -> bool:
    text = str(value).lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise argparse.ArgumentTypeError(f"{value!r} is neither true nor false")
