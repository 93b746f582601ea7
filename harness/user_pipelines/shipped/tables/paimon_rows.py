"""Serves the rows of a Paimon table as JSON lines at a port, since to start pypaimon for each read takes seconds.

Arguments: the port, and the folder of the catalog.  `paimon_rows.py PORT` prints what is served.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer


def serve(port: int, warehouse: str) -> None:
    import pypaimon

    catalog = pypaimon.CatalogFactory.create({"warehouse": warehouse})
    catalog.create_database("db", True)

    class Rows(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            rows = []
            if "rows" in catalog.list_tables("db"):
                read = catalog.get_table("db.rows").new_read_builder()
                rows = read.new_read().to_arrow(read.new_scan().plan().splits()).to_pylist()
            self.send_response(200)
            self.end_headers()
            self.wfile.write("".join(json.dumps(row) + "\n" for row in rows).encode())

        def log_message(self, *_: object) -> None:
            """Nothing of each read."""

    with HTTPServer(("127.0.0.1", port), Rows) as server:
        print(f"serving at {port}", flush=True)
        server.serve_forever()


def show(port: int) -> None:
    directly = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with directly.open(f"http://127.0.0.1:{port}", timeout=10) as answer:
        sys.stdout.write(answer.read().decode())


if __name__ == "__main__":
    if len(sys.argv) > 2:
        serve(int(sys.argv[1]), sys.argv[2])
    else:
        show(int(sys.argv[1]))
