"""Run one step of the preparation; if it fails, report which one and what it needs, and stop.

Written for Python 3.8, because `bootstrap.py` uses it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Sequence  # noqa: UP035 - the newer place is subscriptable only from Python 3.9


def attempt(step: str, needs: str, command: Sequence[str | Path], **options: Any) -> str:
    """Run `command` and return what it printed; its messages go to standard error.

    `step` and `needs` are for the error: what was being done, and what would make it work.
    """
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **options)
    except FileNotFoundError as error:
        sys.exit(f"{step} failed: there is no program {error.filename}.\n{needs}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.stdout}{step} failed (exit status {error.returncode}; see above).\n{needs}")
    return done.stdout
