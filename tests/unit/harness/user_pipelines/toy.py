"""A pipeline of thirty lines: it counts records by key, in SQLite.

Arguments: the folder of the input, the database, and how it works.  `careful` keeps counts, rows and
the file's name in one transaction.  `repeating` writes rows at once, and a file's name when all
its records are counted.  `losing` writes the file's name first.  A fourth argument is printed.  If it is `ends`, the
pipeline ends when it has looked at every file once.

`toy.py stop DATABASE`, or `drain`, stops it behind a file, and says how many records it has counted.
It does so by a file beside the database.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from pathlib import Path

READ_INTERVAL_S = 0.004


def main(records: str, database: str, how: str, begun: str = "") -> None:
    print(f"begun {begun}", flush=True)
    store = sqlite3.connect(database, isolation_level=None, timeout=10)
    store.execute("PRAGMA journal_mode = wal")
    store.execute("CREATE TABLE IF NOT EXISTS done (file TEXT PRIMARY KEY, records INT)")
    store.execute("CREATE TABLE IF NOT EXISTS counts (key INT PRIMARY KEY, n INT)")
    store.execute("CREATE TABLE IF NOT EXISTS rows (key INT, n INT)")
    if store.execute("SELECT count(*) FROM done").fetchone()[0]:
        print("restored", flush=True)
    stop = Path(database).with_name("stop")
    while True:
        for path in sorted(Path(records).glob("*.jsonl")):
            if stop.exists():
                counted = store.execute("SELECT count(*) FROM rows").fetchone()[0]
                stop.write_text(f"covers {counted} records")
                return
            if not store.execute("SELECT 1 FROM done WHERE file = ?", (path.name,)).fetchone():
                process(store, path, how)
        if begun == "ends":
            return
        time.sleep(READ_INTERVAL_S)


def request_stop(database: str) -> None:
    stop = Path(database).with_name("stop")
    stop.touch()
    while not stop.read_text():
        time.sleep(READ_INTERVAL_S)
    print(stop.read_text())
    stop.unlink()


def process(store: sqlite3.Connection, path: Path, how: str) -> None:
    lines = path.read_text().splitlines()
    if how == "careful":
        store.execute("BEGIN IMMEDIATE")
    if how == "losing":
        store.execute("INSERT INTO done VALUES (?, ?)", (path.name, len(lines)))
    for line in lines:
        key = json.loads(line)["key"]
        store.execute("INSERT INTO counts VALUES (?, 1) ON CONFLICT (key) DO UPDATE SET n = n + 1", (key,))
        store.execute("INSERT INTO rows SELECT key, n FROM counts WHERE key = ?", (key,))
        time.sleep(READ_INTERVAL_S)
    if how != "losing":
        store.execute("INSERT INTO done VALUES (?, ?)", (path.name, len(lines)))
    if how == "careful":
        store.execute("COMMIT")


if __name__ == "__main__":
    if sys.argv[1] in ("stop", "drain"):
        request_stop(sys.argv[2])
    else:
        main(*sys.argv[1:])
