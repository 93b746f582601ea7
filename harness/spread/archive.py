"""The package as an archive that Spark unpacks on the executors of a cluster."""

from __future__ import annotations

import hashlib
import importlib
import io
import sysconfig
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKAGE = __package__.partition(".")[0]
DATE = (1980, 1, 1, 0, 0, 0)
"""the earliest date of a zip file, so that the same sources give the same archive"""


def write_archive(folder: Path, names: Iterable[str] = ()) -> Path:
    """Write the archive into a folder.

    It has this package, and the modules of `names` (package.module:NAME) that are not installed, such as the user's own
    in the current folder.  Its name is a digest of its content.
    """
    files = dict(_files_of_package())
    for name in names:
        files.update(_files_of_module(name.partition(":")[0].partition(".")[0]))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(path, DATE), data, zipfile.ZIP_DEFLATED)
    data = content.getvalue()
    target = folder / f"{PACKAGE}-{hashlib.sha256(data).hexdigest()[:16]}.zip"
    if not target.exists():  # executors may be reading it: another subject of this application had the same
        target.write_bytes(data)
    return target


def _files_of_package() -> Iterator[tuple[str, bytes]]:
    """The package's own files, also if it is a checkout with other folders beside the package's, and its version."""
    package = importlib.import_module(PACKAGE)
    root = Path(package.__path__[0])
    yield f"{PACKAGE}/__init__.py", (root / "__init__.py").read_bytes()
    for folder in sorted(root.iterdir()):
        if (folder / "__init__.py").is_file():
            yield from _under(folder, root, PACKAGE)
    version = package.__version__
    yield f"{PACKAGE}-{version.split()[0]}.dist-info/METADATA", f"Name: {PACKAGE}\nVersion: {version}\n".encode()


def _files_of_module(top: str) -> Iterator[tuple[str, bytes]]:
    """The files of a user's top-level module; none of an installed one, which executors need as other dependencies."""
    file = getattr(importlib.import_module(top), "__file__", None)
    installed = (Path(sysconfig.get_path(kind)) for kind in ("purelib", "platlib", "stdlib"))
    if top == PACKAGE or file is None or any(Path(file).is_relative_to(place) for place in installed):
        return
    if Path(file).name == "__init__.py":
        yield from _under(Path(file).parent, Path(file).parent.parent, "")
    else:
        yield Path(file).name, Path(file).read_bytes()


def _under(folder: Path, root: Path, prefix: str) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield (Path(prefix) / path.relative_to(root)).as_posix(), path.read_bytes()
