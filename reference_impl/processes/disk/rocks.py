"""Working state in RocksDB: the LSM store of real processes (ABS-10).

Each attempt has a database in a folder of its own, which is deleted with the attempt: nothing is ever restored from
there.  So there is no write-ahead log, and nothing is synced.  Flushes and compactions come when the engine's settings
say, as in virtual time, and not when RocksDB would choose.
"""

from __future__ import annotations

import importlib
import shutil
from collections.abc import ItemsView, Iterable, Iterator
from pathlib import Path
from typing import Any

from ...core.backends.keyed_state import FiledState, KeyedState
from ...core.backends.keys import as_bytes, from_bytes
from ...core.backends.laid_out_view import LaidOutView
from ...core.backends.layouts import UNLISTED, Layout
from ...core.backends.lsm import Codec, Limits
from ...core.backends.sst_files import FORMAT_VERSION
from ...core.decisions.parts import Parts
from ...core.decisions.snapshots.state_files import StateFiles
from ...core.extensions.opening import limits_of, open_state, prefix_of
from ...core.job.config import Config
from ...core.job.task_spec import TaskSpec
from ...core.vocabulary.ids import AttemptId, TaskId
from ...core.vocabulary.state import TaskState

MODULE = "rocksdict"


class RocksState(FiledState):
    """The state of one attempt."""

    __slots__ = ("_codec", "_database", "_decisions", "_files", "_flushes", "_folder", "_limits", "_made", "_memtable",
                 "_merge_all", "_merging", "_numbers", "_prefix")  # fmt: skip

    def __init__(self, folder: Path, layout: Layout, limits: Limits, prefix: str, decisions: StateFiles) -> None:
        """The folder is not there yet.  In snapshots the names of files begin with `prefix`."""
        rocksdict = importlib.import_module(MODULE)
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_disable_auto_compactions(True)
        options.set_keep_log_file_num(1)
        options.set_compression_type(rocksdict.DBCompressionType.none())  # as `sst_files` reads them
        table = rocksdict.BlockBasedOptions()
        table.set_format_version(FORMAT_VERSION)
        options.set_block_based_table_factory(table)
        folder.parent.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._database = rocksdict.Rdict(str(folder), options)
        self._merge_all = rocksdict.CompactOptions()
        """RocksDB would move files to the last level as they are, if nothing is there yet"""
        self._merge_all.set_bottommost_level_compaction(rocksdict.BottommostLevelCompaction.force_optimized())
        without_log = rocksdict.WriteOptions()
        without_log.disable_wal = True
        self._database.set_write_options(without_log)
        self._codec = Codec(layout)
        self._limits = limits
        self._memtable: dict[bytes, None] = {}
        """the keys that changed since the last flush"""
        self._files = 0
        """how many files of flushes are not merged yet: those of level 0"""
        self._merging = False
        self._flushes = 0
        self._prefix = prefix
        self._decisions = decisions
        self._made: dict[int, bool] = {}
        """by number of each file that a snapshot has named: whether it is still there"""
        self._numbers: dict[str, int] = {}
        """of RocksDB's files that a snapshot has named"""

    def close(self) -> None:
        self._database.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    # -- as a mapping ------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        value = self._database.get(as_bytes(key))
        if value is None:
            raise KeyError(key)
        return self._codec.decode(value)

    def __setitem__(self, key: Any, value: Any) -> None:
        found = as_bytes(key)
        self._database[found] = self._codec.encode(value)
        self._changed(found)

    def __delitem__(self, key: Any) -> None:
        found = as_bytes(key)
        if self._database.get(found) is None:
            raise KeyError(key)
        del self._database[found]
        self._changed(found)

    def __iter__(self) -> Iterator[Any]:
        """In key order."""
        return (from_bytes(key) for key in self._database.keys())  # noqa: SIM118 - it is no mapping

    def __len__(self) -> int:
        return sum(1 for _ in self._database.keys())  # noqa: SIM118

    def items(self) -> ItemsView[Any, Any]:
        """In key order."""
        return _state(self._codec, self._database.items()).items()

    def _changed(self, key: bytes) -> None:
        self._memtable[key] = None
        if len(self._memtable) >= self._limits.memtable_entries:
            self._flush()

    # -- files -------------------------------------------------------------------------

    def _flush(self) -> None:
        if self._memtable:
            self._database.flush()
            self._memtable.clear()
            self._flushes += 1
            self._files += 1

    def take_flushes(self) -> int:
        flushes, self._flushes = self._flushes, 0
        return flushes

    def begin_compaction(self) -> bool:
        """RocksDB chooses the inputs when the compaction ends: all files that there are by then."""
        if self._merging or self._files < self._limits.compaction_files:
            return False
        self._merging = True
        return True

    def end_compaction(self) -> None:
        self._merging = False
        self._database.compact_range(None, None, self._merge_all)
        self._files = sum(file["level"] == 0 for file in self._database.live_files())

    # -- snapshots -----------------------------------------------------------------------

    def snapshot(self) -> RocksView:
        self._flush()
        iterator = self._database.iter()
        return RocksView(self._codec, iterator, self._live_files(iterator))

    def _live_files(self, iterator: Any) -> list[RocksFile]:
        """RocksDB's files of this moment, the newest last: those of deep levels are older, and of level 0 those with
        lower numbers.  A file keeps its name in all snapshots."""
        live = sorted(self._database.live_files(), key=lambda file: (-file["level"], file["name"]))
        names = [file["name"].lstrip("/") for file in live]
        for gone in [name for name in self._numbers if name not in names]:
            self._made[self._numbers.pop(gone)] = False
        for name in names:
            if name not in self._numbers:
                number = self._numbers[name] = self._decisions.number(self._made)
                self._made[number] = True
        return [RocksFile(f"{self._prefix}-{self._numbers[name]}", self._folder / name, iterator) for name in names]

    def restore(self, state: TaskState) -> None:
        for key in list(self._database.keys()):
            del self._database[key]
        for key, value in self._codec.layout.items(state):
            self[key] = value


class RocksFile:
    """An SST file of a database, which keeps it for an iterator of the moment at which it was live."""

    __slots__ = ("_iterator", "_path", "name")

    def __init__(self, name: str, path: Path, iterator: Any) -> None:
        self.name = name
        self._path = path
        self._iterator = iterator

    @property
    def path(self) -> str:
        return str(self._path)

    @property
    def data(self) -> bytes:
        return self._path.read_bytes()


class RocksView(LaidOutView):
    """What an iterator sees that was made at the moment of the view: RocksDB keeps the files for it, whatever a
    compaction deletes.  (Iterators of `Rdict.snapshot()` see later changes: rocksdict 0.3.29 does not pass it on.)

    A snapshot that is not canonical takes these files, and not what the iterator reads in them.
    """

    __slots__ = ("_codec", "_files", "_iterator", "_read")

    def __init__(self, codec: Codec, iterator: Any, files: list[RocksFile]) -> None:
        super().__init__(codec.layout)
        self._codec = codec
        self._iterator = iterator
        self._files = files
        self._read: dict[Any, Any] | None = None

    def _state(self) -> dict[Any, Any]:
        if self._read is None:
            self._read = _state(self._codec, _items(self._iterator))
            self._iterator, self._files = None, []  # the files may be deleted now
        return self._read

    def files(self) -> list[RocksFile]:
        return self._files

    @property
    def layout(self) -> str:
        return self._layout.name


def _items(iterator: Any) -> Iterator[tuple[bytes, bytes]]:
    iterator.seek_to_first()
    while iterator.valid():
        yield iterator.key(), iterator.value()
        iterator.next()


def _state(codec: Codec, items: Iterable[tuple[bytes, bytes]]) -> dict[Any, Any]:
    """The keys and values, in key order."""
    return {from_bytes(key): codec.decode(value) for key, value in items}


class WorkingStates:
    """The working state of the attempts in one process, in a folder of this process."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._open: dict[tuple[TaskId, AttemptId], RocksState] = {}

    def open(self, spec: TaskSpec, layout: Layout, config: Config, parts: Parts) -> KeyedState:
        if config.state_backend == "heap" or layout is UNLISTED:
            return open_state(spec, layout, config, parts)
        prefix = prefix_of(spec)
        state = RocksState(self._root / prefix, layout, limits_of(config), prefix, parts.state_files)
        self._open[spec.task, spec.attempt] = state
        return state

    def close(self, task: TaskId, attempt: AttemptId) -> None:
        """The attempt is over, and its state is deleted."""
        state = self._open.pop((task, attempt), None)
        if state is not None:
            state.close()
