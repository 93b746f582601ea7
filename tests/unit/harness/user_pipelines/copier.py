"""A pipeline of thirty lines: it copies records from a TCP connection into SQLite, and connects again when it is lost.

Arguments: the port, the database, and how it works.  `careful` goes on behind the rows that it has
stored.  `repeating` stores again what every new connection brings.  `failing` ends with an error when
its connection is lost.
"""

from __future__ import annotations

import json
import socket
import sqlite3
import sys
import time

WORK_S = 0.003


def main(port: str, database: str, how: str) -> None:
    store = sqlite3.connect(database, isolation_level=None, timeout=10)
    store.execute("PRAGMA journal_mode = wal")
    store.execute("CREATE TABLE IF NOT EXISTS rows (key INT, value INT, tag INT)")
    while True:
        try:
            with socket.create_connection(("127.0.0.1", int(port))) as link:
                copy(store, link, how)
        except OSError:
            pass
        if how == "failing":
            sys.exit("the connection is lost")
        time.sleep(WORK_S)


def copy(store: sqlite3.Connection, link: socket.socket, how: str) -> None:
    stored = store.execute("SELECT count(*) FROM rows").fetchone()[0]
    if stored:
        print(f"continues behind {stored} rows", flush=True)
    for number, line in enumerate(link.makefile()):
        if not line.endswith("\n"):  # the connection broke amid a record
            return
        if number < stored and how != "repeating":
            continue
        record = json.loads(line)
        store.execute("INSERT INTO rows VALUES (?, ?, ?)", (record["key"], record["value"], record["tag"]))
        time.sleep(WORK_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
