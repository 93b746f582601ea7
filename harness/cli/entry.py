"""The entry point: parse, dispatch, and turn every result and every error into an exit code."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import errno
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from ..runtime import background
from ..runtime.config import load, nearest
from ..runtime.exit_codes import CutproofError, ExitCode, HarnessFailed, UsageError, one_line
from ..runtime.interruption import SIGNALS, signals_interrupt
from .terminal.options import Parser, add_common, apply_settings
from .terminal.output import Output, debugging, show_what_can_be_shown

VERBS: dict[str, str] = {
    "verify": "draw scenarios, run them, judge them against PySpark, write the report",
    "replay": "run one scenario file again and print what happened",
    "judge": "judge a recorded history again, without running anything; also one recorded elsewhere",
    "check": "judge two tables, expected against committed: any pipeline's output",
    "report": "write a run folder's report again",
    "defects": "list the planted defects; run them and report which are caught",
    "pipeline": "list the pipelines that are run from outside; try one",
    "subject": "an adapter for your own engine: begin one, try it; list the subjects",
    "snapshots": "snapshots that a run on processes has left: list, verify, convert, move, fork",
    "chaos": "the nightly job: a time budget, a bank of counterexamples",
    "doctor": "what this machine has, what it lacks and how to get it",
}
"""Each verb is a module of this package, imported when it is used, with `configure(parser)` and `run(options,
output)`."""

EPILOG = """\
examples:
  cutproof verify                          a minute of drawn scenarios on the reference engine
  cutproof verify --subject my.engine:Engine --scenarios 200
  cutproof replay out/latest/counterexamples/ID.json
  cutproof check --expected expected.parquet --actual committed/

exit codes:
  0 all that was judged held    1 an invariant was violated    2 bad input or usage
  3 nothing violated, but the run fell short of its profile     4 the harness or its environment failed
  130 interrupted; what was done so far is kept

Settings come from [tool.cutproof] in pyproject.toml or from cutproof.toml, then from
CUTPROOF_... environment variables, then from options. CUTPROOF_DEBUG=1 shows tracebacks."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; every error is one line on standard error."""
    show_what_can_be_shown()
    words = list(sys.argv[1:] if arguments is None else arguments)
    output = Output(json="--json" in words)
    try:
        with signals_interrupt():
            return int(_dispatch(words))
    except CutproofError as error:
        _debug()
        return output.error(error)
    except KeyboardInterrupt:
        return output.error(_Interrupted("interrupted"))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.HARNESS_FAILED
    except Exception as error:
        _debug()
        return output.error(explain(error))


def command() -> NoReturn:
    """The program: `main`, and an exit code also for a signal before or after it."""
    code: int = ExitCode.INTERRUPTED
    with contextlib.suppress(KeyboardInterrupt):  # just before the handler was set, or just after it was removed
        code = main()
    leave(code)


def leave(code: int) -> NoReturn:
    """End this process, but not while another thread is in a native call.

    If such a call does not return within a bound, the interpreter is not ended in order: the registered exit handlers
    run, and the process exits.
    """
    for one in SIGNALS:
        signal.signal(one, signal.SIG_IGN)
    if background.end():
        raise SystemExit(code)
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


class _Interrupted(CutproofError):
    exit_code = ExitCode.INTERRUPTED


def _dispatch(words: list[str]) -> ExitCode:
    if not words or words[0].startswith("-"):
        _root_parser().parse_args(words or ["--help"])
    verb, rest = words[0], words[1:]
    if verb not in VERBS:
        raise UsageError(f"there is no verb {verb!r}{nearest(verb, VERBS)}")
    module = _module_of(verb)
    parser = verb_parser(verb)
    if "-h" not in rest and "--help" not in rest:
        apply_settings(parser, load(Path.cwd()))
    options = parser.parse_args(rest)
    if getattr(options, "functions", None):
        from ..workloads.user_functions import known

        known(options.functions)
    try:
        code: ExitCode = module.run(options, Output(json=options.json, quiet=options.quiet))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _from_os(error, takes_out=hasattr(options, "out")) from error
    return code


def _root_parser() -> argparse.ArgumentParser:
    verbs = "\n".join(f"  {name:<10} {what}" for name, what in VERBS.items())
    parser = Parser(
        prog="cutproof",
        usage="cutproof [-h] [--version] VERB ...",
        description="Proves a stream processor's exactly-once claims, or breaks them.\n\nverbs:\n"
        f"{verbs}\n\n`cutproof VERB --help` describes each verb.",
        epilog=EPILOG,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    return parser


def _module_of(verb: str) -> ModuleType:
    return importlib.import_module(f".{verb}", __package__)


def verb_parser(verb: str) -> Parser:
    """The parser of one verb's command line, with the options that all verbs share."""
    module = _module_of(verb)
    parser = Parser(prog=f"cutproof {verb}", description=module.DESCRIPTION, epilog=module.EXAMPLES)
    module.configure(parser)
    add_common(parser)
    return parser


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from ..runtime.version import package_version

        print(f"cutproof {package_version()}")
        parser.exit()


def explain(error: Exception) -> CutproofError:
    """Any exception as an error of one line with its exit code."""
    if isinstance(error, CutproofError):
        return error
    if isinstance(error, OSError):
        return _from_os(error)
    from ...properties.checking.errors import CheckInputError
    from ...properties.semantics.user_functions import CounterpartFailed
    from ...properties.spark.session.errors import SparkUnavailable
    from ..subject.port import SubjectFailed

    if isinstance(error, (CheckInputError, CounterpartFailed)):
        return UsageError(str(error))
    if isinstance(error, (SparkUnavailable, SubjectFailed)):
        return HarnessFailed(str(error))
    return HarnessFailed(f"the harness failed: {one_line(error)} (CUTPROOF_DEBUG=1 shows where)")


def _debug() -> None:
    if debugging():
        import traceback

        traceback.print_exc()


def _from_os(error: OSError, *, takes_out: bool = True) -> CutproofError:
    """An error of the operating system, as the user's or the environment's.  `takes_out`: the verb has `--out`."""
    where = f" {error.filename}" if error.filename else ""
    if error.errno == errno.ENOSPC:
        if not takes_out:
            return HarnessFailed(
                f"the disk is full{where and f':{where}'}; make room, or name another folder with TMPDIR"
            )
        if not error.filename:  # most likely a file of a run is meant: the folder named with --out gets only small ones
            return HarnessFailed("the disk is full; make room, or name another folder with TMPDIR or --out")
        return HarnessFailed(f"the disk is full:{where}; make room, or name another folder with --out or TMPDIR")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return UsageError(
            f"no permission for{where}{'; name a folder that can be written with --out' if takes_out else ''}"
        )
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EISDIR):
        return UsageError(f"cannot open{where}: {error.strerror}")
    return HarnessFailed(f"{error.strerror or error}{where}")
