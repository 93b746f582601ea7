"""`cutproof snapshots`: the snapshots in a directory that a run has left."""

from __future__ import annotations

import argparse
import errno
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from ...reports.text import WIDTH
from ...reports.words import plural
from ..runtime.exit_codes import ExitCode, HarnessFailed, UsageError
from ..runtime.progress import Progress
from .terminal.options import progress_of
from .terminal.output import Output, printable

if TYPE_CHECKING:
    from ..reference_engine.snapshots.inventory import Change, Report, ShownSnapshot, SnapshotSummary

COMMANDS = ("list", "show", "verify", "convert", "delete", "move", "fork")
FORMATS = ("canonical", "native", "incremental")
OF_ONE = ("show", "convert", "delete", "move", "fork")
WITH_TARGET = ("move", "fork")
WITH_FORMAT = ("convert", "fork")
ALONE = ("convert", "delete", "move")
"""those that change DIR"""
PAST = {
    "convert": ("converted", ""),
    "delete": ("deleted", ""),
    "move": ("moved", "to"),
    "fork": ("copied", "into"),
}
MOST_LINES = 10

DESCRIPTION = """\
Looks at the snapshots in a directory, and changes them. DIR is the folder of a saved run on
processes, its store or the copies in that, or what `replay --snapshots` or `fork` has made.
A snapshot is named by its number, or `newest`.

  list                  every snapshot: format, size, which others it refers to
  show SNAPSHOT         its tasks and their files
  verify                restores every state: is any file missing, altered or another one?
  convert SNAPSHOT      write it in another format (--to), all files anew and of its own
  delete SNAPSHOT       delete it; files that another snapshot needs stay
  move SNAPSHOT TARGET  move it with all its files into another directory
  fork SNAPSHOT TARGET  copy it into a new directory, from which a job can begin

The directory of a job that runs is refused. A command that is interrupted changes nothing or
everything; repeat it. The newest snapshot, the one that a recovery would choose, and the
newest that can be restored are neither deleted nor moved; a copy may be."""

EXAMPLES = """\
examples:
  cutproof snapshots list ~/.local/state/cutproof/runs/ID
  cutproof snapshots show runs/ID newest
  cutproof snapshots convert runs/ID 4 --to canonical
  cutproof snapshots fork runs/ID newest upgraded --to canonical

exit codes: 0 done, or all is whole; 1 verify: some snapshot cannot be restored, or what lies
beside them cannot be read; 2 bad input, no snapshot was changed; 4 the disk failed"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", metavar="COMMAND", choices=COMMANDS, help=", ".join(COMMANDS))
    parser.add_argument(
        "folder", metavar="DIR", type=Path, help="the folder of a saved run, or a directory of snapshots"
    )
    parser.add_argument("snapshot", metavar="SNAPSHOT", nargs="?", help="its number, or `newest`")
    parser.add_argument("target", metavar="TARGET", nargs="?", type=Path, help="the other directory, of move and fork")
    parser.add_argument("--to", metavar="FORMAT", choices=FORMATS, help=f"the format: {', '.join(FORMATS)}")


def run(options: argparse.Namespace, output: Output) -> ExitCode:
    _check(options)
    try:
        with progress_of(options) as progress:
            report = _done(options, progress)
    except PermissionError as error:
        raise UsageError(f"no permission for {error.filename}") from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise UsageError(f"the name {error.filename} is too long; name a shorter one") from error
        if error.errno != errno.ENOSPC:
            raise
        where = f": {error.filename}" if error.filename else ""
        raise HarnessFailed(f"the disk is full{where}; make room, and repeat the command") from error
    _print(report, output)
    output.result(report)
    return ExitCode.VIOLATED if options.action == "verify" and not report.is_whole else ExitCode.HELD


def _check(options: argparse.Namespace) -> None:
    """Raise UsageError for arguments that do not go with the command."""
    action = options.action
    words = f"cutproof snapshots {action} {options.folder}"
    if action in OF_ONE and options.snapshot is None:
        raise UsageError(f"name the snapshot: {words} SNAPSHOT{' TARGET' if action in WITH_TARGET else ''}")
    if action in WITH_TARGET and options.target is None:
        raise UsageError(f"name the other directory: {words} {options.snapshot} TARGET")
    surplus = options.target if action not in WITH_TARGET else None
    surplus = options.snapshot if action not in OF_ONE else surplus
    if surplus is not None:
        raise UsageError(f"{action} takes no {str(surplus)!r}; see `cutproof snapshots --help`")
    if action == "convert" and options.to is None:
        raise UsageError(f"name the format: {words} {options.snapshot} --to {'|'.join(FORMATS)}")
    if action not in WITH_FORMAT and options.to is not None:
        raise UsageError(f"{action} takes no --to; {' and '.join(WITH_FORMAT)} do")


def _done(options: argparse.Namespace, progress: Progress) -> Report:
    from ..reference_engine.snapshots import changes
    from ..reference_engine.snapshots.directory import Directory, locked, root_of
    from ..reference_engine.snapshots.inventory import report

    root = root_of(options.folder)
    action, named = options.action, options.snapshot
    change = None
    with ExitStack() as stack:  # the report is made under the lock of the change: nobody can refuse it any more
        if action in ALONE:
            here = stack.enter_context(changes.changing(root))
            if action == "convert":
                change = changes.convert(here, named, options.to, progress)
            elif action == "delete":
                change = changes.delete_snapshot(here, named)
            else:
                change = changes.move(here, named, options.target, progress)
        else:
            stack.enter_context(locked(root, alone=False))
            if action == "fork":
                change = changes.fork(Directory(root), named, options.target, options.to, progress)
        directory = Directory(root)
        shown = directory.number(named) if action == "show" else None
        under_way = changes.unfinished(root)
        return report(
            directory,
            action,
            progress,
            unfinished=f"{under_way.command} {under_way.snapshot}" if under_way is not None else None,
            shown=shown,
            change=change,
            restoring=action == "verify",
        )


def _print(report: Report, output: Output) -> None:
    if report.change is not None:
        _print_change(report.command, report.change, output)
    elif report.shown is not None:
        _print_shown(report.shown, output)
    else:
        _print_list(report, output)
    if report.unfinished is not None:
        output.say(
            _wrapped(
                f"{report.unfinished} was interrupted: repeat it; the next command that changes {report.directory} "
                "deletes what it has left."
            )
        )


def _print_list(report: Report, output: Output) -> None:
    header = ("id", "kind", "job", "format", "own bytes", "shared bytes", "refers to", "needed by", "")
    output.table(header, [_line(one) for one in report.snapshots])
    output.say()
    _print_problems([problem for one in report.snapshots for problem in one.problems], output)
    _print_problems([f"{one.file}: {one.problem}" for one in report.unreadable], output)
    _print_problems(report.problems, output)
    if report.recovery:
        unknown = ": no run here says how the last job began" if len(report.recovery) > 1 else ""
        output.say(f"A recovery would choose {' or '.join(map(str, report.recovery))}{unknown}.")
    if report.newest is not None and report.recovery != [report.newest]:
        output.say(f"A new job begins with the newest, {report.newest}.")
    if report.unneeded_files is None or report.unneeded_bytes is None:
        why = "a record cannot be read" if report.unreadable else "no record is there"
        output.say(f"It is not known which files are needed, since {why}.")
    elif report.unneeded_files:
        files = plural(report.unneeded_files, "file")
        output.say(f"No snapshot needs {files} of {report.unneeded_bytes:,} bytes.")
    if report.without_record:
        more = ", ..." if len(report.without_record) > MOST_LINES else ""
        numbers = _numbers(report.without_record[:MOST_LINES]) + more
        output.say(
            _wrapped(f"There are files and no record of {numbers}: never complete, or deleted, or the record is lost.")
        )
    if report.command == "verify":
        output.say(_verified(report))


def _verified(report: Report) -> str:
    bad = sum(bool(one.problems) for one in report.snapshots) + len(report.unreadable)
    count = len(report.snapshots) + len(report.unreadable)
    if not count:
        return "There is no snapshot that could be restored."
    if bad:
        return f"{bad} of {plural(count, 'snapshot')} cannot be restored."
    beside = ", but not all that lies beside them can be read" if report.problems else ""
    return f"Every state of {plural(count, 'snapshot')} was restored{beside}."


def _line(one: SnapshotSummary) -> tuple[str, ...]:
    return (
        str(one.id),
        one.kind,
        str(one.job),
        one.snapshot_format,
        f"{one.own_bytes:,}",
        f"{one.shared_bytes:,}",
        _numbers(one.refers_to),
        _numbers(one.referred_to_by),
        "NO PERMISSION" if one.no_permission else "DAMAGED" if one.problems else "",
    )


def _print_problems(problems: Sequence[str], output: Output) -> None:
    for problem in list(dict.fromkeys(problems))[:MOST_LINES]:
        output.say(_wrapped(f"- {problem}"))
    if len(problems) > MOST_LINES:
        output.say(f"  and {len(problems) - MOST_LINES} more")


def _print_shown(shown: ShownSnapshot, output: Output) -> None:
    rows = [
        (
            part.task if at == 0 else "",
            file.name,
            file.kind,
            f"{file.bytes:,}" if file.bytes is not None else "NO PERMISSION" if file.no_permission else "MISSING",
            _numbers(file.shared_with),
        )
        for part in shown.parts
        for at, file in enumerate(part.files)
    ]
    output.table(("task", "file", "holds", "bytes", "needed by"), rows)
    output.say()
    if shown.finished:
        output.say(_wrapped(f"Finished tasks: {', '.join(shown.finished)}."))
    if shown.increments:
        output.say(f"It builds on {plural(shown.increments, 'earlier checkpoint')}.")
    if shown.logs:
        output.say(_wrapped(f"Logs of channels: {', '.join(shown.logs)}."))
    _print_problems([file.problem for part in shown.parts for file in part.files if file.problem], output)


def _print_change(command: str, change: Change, output: Output) -> None:
    where = f" {PAST[command][1]} {change.target}" if change.target is not None else ""
    if change.was_done and command == "delete":  # perhaps the job had deleted it, or it was never complete
        output.say(f"Snapshot {change.snapshot} is not there (any more); nothing was left to do.")
        return
    if change.was_done:
        output.say(
            printable(f"Snapshot {change.snapshot} was {PAST[command][0]}{where} before; nothing was left to do.")
        )
        return
    output.say(printable(f"Snapshot {change.snapshot} is {PAST[command][0]}{where}."))
    output.say(f"{plural(len(change.written), 'file')} written, {plural(len(change.deleted), 'file')} deleted.")
    if change.kept:
        output.say(f"{plural(len(change.kept), 'file')} stayed, since other snapshots need them.")


def _numbers(found: Sequence[int]) -> str:
    return ", ".join(map(str, found))


def _wrapped(text: str) -> str:
    return "\n".join(
        wrap(printable(text), WIDTH, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
    )
