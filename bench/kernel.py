"""`make bench-kernel`: measure the kernel, print a table, write bench/results/.

The same as `tamis bench`; see `python bench/kernel.py --help`.
"""

import sys

from tamis.cli.app import run

if __name__ == "__main__":
    run(["bench", *sys.argv[1:]])
