"""Fetches jars and all that they depend on into a folder: `python -m ….resolve_jars FOLDER GROUP:NAME:VERSION...`.

Run as a process of its own, since Java keeps what it has loaded.  The resolver is that of Spark's
`--packages`, with its settings and its cache.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from ...properties.spark import session


def main(folder: str, *artifacts: str) -> None:
    jvm: Any = session.session()._jvm
    utils, nothing = jvm.org.apache.spark.util.MavenUtils, jvm.scala.Option.empty()
    out = jvm.java.lang.System.err
    try:
        settings = utils.buildIvySettings(nothing, nothing, False, out)
        found = utils.resolveMavenCoordinates(
            ",".join(artifacts), settings, nothing, True, jvm.scala.collection.immutable.Nil, False, out
        )
        paths = [found.apply(number) for number in range(found.size())]
        for path in paths:
            shutil.copy(path, Path(folder) / Path(path).name)
    finally:
        session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
