"""Fetches jars and all that they depend on into a folder: `python -m ….resolve_jars FOLDER GROUP:NAME:VERSION...`.

Run as a process of its own, since Java keeps what it has loaded.  The resolver is Ivy, with the
settings and the cache of Spark's `--packages`: another repository than Maven Central is asked if
the environment names it (DEFAULT_ARTIFACT_REPOSITORY).  Spark itself leaves out Scala's library,
which a broker needs, so Ivy is asked here without Spark's exclusions.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from ....properties.spark.session import session

ALL = "default"
"""Ivy's name for an artifact and all that it needs to run; a module of Maven has it as `default(runtime)`"""


def main(folder: str, *artifacts: str) -> None:
    """Exits with one line for what cannot be had."""
    try:
        problems, files = _resolved(session.session()._jvm, artifacts)
    finally:
        session.stop()
    if problems:
        sys.exit("; ".join(problems))
    for group, path in files:
        shutil.copy(path, Path(folder) / f"{group}_{path.name}")


def _resolved(jvm: Any, artifacts: tuple[str, ...]) -> tuple[list[str], list[tuple[str, Path]]]:
    """What Ivy says cannot be had, and the files of all that it has fetched, each with its group."""
    core, nothing = jvm.org.apache.ivy.core, jvm.scala.Option.empty()
    descriptor, module_id = core.module.descriptor, core.module.id.ModuleRevisionId
    quiet = jvm.java.io.PrintStream(jvm.java.io.ByteArrayOutputStream())
    ivy = jvm.org.apache.ivy.Ivy.newInstance(
        jvm.org.apache.spark.util.MavenUtils.buildIvySettings(nothing, nothing, False, quiet)
    )
    wanted = descriptor.DefaultModuleDescriptor.newDefaultInstance(
        module_id.newInstance("cutproof", "-".join(artifacts).replace(":", "-"), "1")
    )
    for artifact in artifacts:
        one = descriptor.DefaultDependencyDescriptor(module_id.newInstance(*artifact.split(":")), False)
        one.addDependencyConfiguration(ALL, f"{ALL}(runtime)")
        wanted.addDependency(one)
    found = ivy.resolve(wanted, core.resolve.ResolveOptions())
    problems = [str(line).strip() for line in found.getAllProblemMessages()]
    files = [
        (str(one.getArtifact().getModuleRevisionId().getOrganisation()), Path(str(one.getLocalFile())))
        for one in found.getAllArtifactsReports()
        if one.getLocalFile() is not None
    ]
    return problems, files


if __name__ == "__main__":
    main(*sys.argv[1:])
