"""`make bench-compare`: compare the speed of two commits, and their answers bit for bit.

    python bench/compare.py main                      # this working tree against main
    python bench/compare.py v0.1 v0.2 --scales 100K   # two commits
    python bench/compare.py --libraries A B           # two folders that hold a built `tamis`
    python bench/compare.py --reports FILE FILE ...   # one table of several runs of the same sides

Each figure is the ratio head / base: its median over pairs of processes that take turns, and the 95 %
interval of that median. A figure is "slower" if the interval lies wholly above 1.03, "faster" if wholly below
0.97, and "same" otherwise. Prints a table and writes JSON and Markdown into bench/results/. The exit status
is 1 if a figure is slower or an answer differs, and 2 if a side could not be built or run.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from comparison import builds
from comparison.figures import GOLDEN, GROUPS

RESULTS = builds.ROOT / "bench" / "results"


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", nargs="?", help="a commit")
    parser.add_argument("head", nargs="?", help="another one; the working tree with its changes if left out")
    parser.add_argument(
        "--libraries",
        nargs=2,
        type=Path,
        metavar=("BASE", "HEAD"),
        help="folders that hold a built `tamis`, such as those in .compare/built, in place of commits",
    )
    parser.add_argument("--reports", nargs="+", type=Path, help="JSON files that were written before")
    parser.add_argument(
        "--workloads", type=_words, default=None, help="comma-separated; all five if left out"
    )
    parser.add_argument("--scales", default="100K,1M", help="numbers of subscriptions (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=15, help="pairs of processes (default: %(default)s)")
    everything = [*GROUPS, GOLDEN]
    parser.add_argument(
        "--only", type=_words, default=everything, help=f"some of {','.join(everything)} (default: all)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the generators (default: %(default)s)")
    parser.add_argument(
        "--cache", type=Path, default=builds.CACHE, help="for builds and inputs (default: .compare)"
    )
    parser.add_argument(
        "--output", type=Path, default=RESULTS, help="for the report (default: bench/results)"
    )
    parsed = parser.parse_args(given)
    if sum(map(bool, (parsed.base, parsed.libraries, parsed.reports))) != 1:
        parser.error("name the commit to compare with, or two --libraries, or --reports")
    if unknown := set(parsed.only) - set(everything):
        parser.error(f"there are no figures {min(unknown)!r}; choose from {', '.join(everything)}")
    if parsed.pairs < 1:
        parser.error("at least one pair of processes is needed, and six for a verdict")
    return parsed


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def main(given: Sequence[str]) -> int:
    options = arguments(given)
    console = Console(stderr=True)
    if options.reports:
        return _show(options.reports)
    cache = options.cache.resolve()
    try:
        if options.libraries:
            base, head = map(builds.library, options.libraries)
            # The generators of this tree need a compiled kernel: that of the later side, as it knows more.
            sys.path += [str(head.folder), str(builds.ROOT / "lab" / "src")]
        else:
            with console.status("compiling"):
                base, head = (builds.build(commit, cache) for commit in (options.base, options.head))
    except builds.BuildError as error:
        console.print(f"[red]{error}[/]")
        return 2
    from comparison.command import run  # noqa: PLC0415 - needs `tamis`

    return run(options, base, head, cache)


def _show(paths: Sequence[Path]) -> int:
    from comparison import report  # noqa: PLC0415 - needs `tamis`

    figures, circumstances = report.joined(paths)
    base, head = (builds.Build(circumstances[side], builds.ROOT) for side in ("base", "head"))
    report.show(figures, circumstances["environment"], base, head)
    different = circumstances["different_answers"]
    for kind in different:
        print(f"answers differ: {kind}")
    return 1 if different or any(row[-1] == "slower" for row in report.rows(figures)) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
