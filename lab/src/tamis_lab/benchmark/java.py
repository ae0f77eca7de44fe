"""Java programs that drive other engines: jars from Maven, and our compiled sources."""

import os
import subprocess
from pathlib import Path


def class_path(folder: Path, pom: Path, *sources: Path) -> str:
    """The class path of programs: what a pom names, fetched unless it is there, and what javac makes."""
    jars, classes = folder / "lib", folder / "classes"
    if not jars.exists():
        copy = ("dependency:copy-dependencies", f"-DoutputDirectory={jars}")
        subprocess.run(["mvn", "-q", "-B", "-f", str(pom), *copy], check=True)
    classes.mkdir(parents=True, exist_ok=True)
    compile_ = ["javac", "-proc:none", "-cp", f"{jars}/*", "-d", str(classes)]
    subprocess.run([*compile_, *map(str, sources)], check=True)
    return os.pathsep.join([str(classes), f"{jars}/*"])
