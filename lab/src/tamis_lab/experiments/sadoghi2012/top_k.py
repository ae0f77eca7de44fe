"""Shared by Figures 8 and 9 of Sadoghi and Jacobsen 2012: top 1 and top 5, compared with all matches.

The gain of BE*(1) over BE*, the same tree asked for all matches, is in the paper up to 23, 77, 72 and 71
% for the uniform, Zipf, author and title data sets, and that of k-ind(1) over k-ind up to 1.3, 6.2, 3.5
and 8.5 %. No figure is given for BE*(5). "By attribute" is the published bound alone, without that of
conjunctions.

Each gain in time is shown with the gain in candidates, the subscriptions that were visited. The second shows
what bounds rule out; only the first includes the cost of a heap, bounds and scores.
"""

from tamis_lab.experiments.contract import Row
from tamis_lab.experiments.sadoghi2012.workloads import Lines, Loaded, in_turns, less, short, timed

GAINS = {"uniform": (23.0, 1.3), "Zipf": (77.0, 6.2), "author": (72.0, 3.5), "title": (71.0, 8.5)}


def measure_top_k(
    data_set: str,
    x: float,
    loaded: Loaded,
    lines: Lines,
    looked_at: Lines,
    *,
    match_probability: float = 0.001,
) -> None:
    """Time all matches and the best one and five, count candidates, and add the points to the lines."""
    published = timed(loaded, "BE* by attribute", match_probability)
    tree, lists = (timed(loaded, name, match_probability) for name in ("BE*", "k-ind"))
    asked = {
        "BE*": (tree, None),
        "BE*(1)": (tree, 1),
        "BE*(5)": (tree, 5),
        "BE*(1) by attribute": (published, 1),
        "BE*(5) by attribute": (published, 5),
        "k-ind": (lists, None),
        "k-ind(1)": (lists, 1),
    }
    times = in_turns(list(asked.values()))
    for (name, (found, k)), took in zip(asked.items(), times, strict=True):
        lines.setdefault(f"{name}, {data_set}", []).append((x, took))
        looked_at.setdefault(f"{name}, {data_set}", []).append((x, found.candidates(k)))


def gains(data_set: str, lines: Lines, looked_at: Lines) -> list[Row]:
    """By how many per cent the best few take less than all, at most, and with how many fewer candidates.

    >>> names = ("BE*", "BE*(1)", "BE*(5)", "k-ind", "k-ind(1)")
    >>> points = {f"{name}, uniform": [(1.0, 10.0)] for name in names}
    >>> points |= {f"BE*({k}) by attribute, uniform": [(1.0, 5.0)] for k in (1, 5)}
    >>> [row.ours for row in gains("uniform", points, points)]
    [0.0, 0.0, 50.0, 50.0, 0.0]
    >>> gains("uniform", points, points)[2].note
    '50 % at 1, with 5 candidates of 10'
    """

    def row(best: str, everything: str, published: float | None) -> Row:
        few, many = f"{best}, {data_set}", f"{everything}, {data_set}"
        saved = [less(ours, all_) for (_, ours), (_, all_) in zip(lines[few], lines[many], strict=True)]
        notes = [
            f"{time:.0f} % at {short(x)}, with {some:.0f} candidates of {every:.0f}"
            for time, (x, some), (_, every) in zip(saved, looked_at[few], looked_at[many], strict=True)
        ]
        return Row(
            f"{data_set}: {best} under {everything}, % less at most", published, max(saved), "; ".join(notes)
        )

    tree, lists = GAINS[data_set]
    return [
        row("BE*(1)", "BE*", tree),
        row("BE*(5)", "BE*", None),
        row("BE*(1) by attribute", "BE*", tree),
        row("BE*(5) by attribute", "BE*", None),
        row("k-ind(1)", "k-ind", lists),
    ]
