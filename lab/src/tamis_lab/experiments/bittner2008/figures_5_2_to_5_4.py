"""Memory of Boolean filtering and of counting as parameters vary (Bittner 2008, Figures 5.2 to 5.4).

The thesis varies the predicates of a subscription, its conjunctions after translation, and the share of those
that a predicate occurs in, and finds that the memory of both algorithms crosses where the formula says. Its
subscriptions are artificial numbers; ours are real expressions, so that combinations that no expression can
have (a predicate occurs in at least one conjunction) are left out:

    c1 AND ... AND cn AND (b11 AND ... AND b1m OR ... OR bk1 AND ... AND bkm)

has n + k m predicates and k conjunctions, and a predicate occurs in (n + m) / (n + k m) of them on average.
"""

import numpy as np

from tamis_lab.costs import measure, measured_bytes
from tamis_lab.experiments.contract import Experiment, Result, Row, Scale

PREDICATES = (10, 20, 40)
CONJUNCTIONS = (2, 3, 4, 5)
SHARES = (0.3, 0.5, 0.7)
COMMONALITIES = (0.0, 0.25, 0.5)
ALGORITHMS = ("boolean", "counting")


def run(scale: Scale, rng: np.random.Generator) -> Result:
    """Counting over Boolean filtering, by the formulas and measured; and what common predicates save."""
    count = scale.of(small=1_000, paper=1_000_000)
    rows: list[Row] = []
    lines: dict[str, list[tuple[float, float]]] = {}
    for share in SHARES:
        for predicates in PREDICATES:
            for k in CONJUNCTIONS:
                expressions = _with_share(count, predicates, k, share)
                if not expressions:
                    continue
                parameters, found = measure(expressions), _bytes(expressions)
                what = f"{parameters.predicates:g} predicates, {k} conjunctions"
                what += f", share {parameters.use_share:.2f}"
                model = parameters.bytes("counting") / parameters.bytes("boolean")
                note = f"formula: boolean is smaller above {parameters.turning_point('counting'):.2f}"
                rows.append(Row(what, model, found["counting"] / found["boolean"], note))
                if predicates == PREDICATES[1]:
                    for algorithm in ALGORITHMS:
                        drawn = lines.setdefault(f"{algorithm}, share {share}", [])
                        drawn.append((k, found[algorithm] / count))
    for commonality in COMMONALITIES:
        found = _bytes(_expressions(count, 10, 2, 10, commonality))
        what = f"{commonality:.0%} of predicates in common"
        rows += [Row(f"{what}: {name}, bytes each", None, found[name] / count) for name in ALGORITHMS]
    note = (
        f"{count:,} subscriptions for each point. The first rows are the memory of counting over that of "
        "boolean; in the column of the paper, by its formulas. The paper has drawings, and says that memory "
        "crosses about where the formulas have it, and earlier, in favour of boolean, for few predicates and "
        "small shares. So it is here: lists of conjunctions have a head each that the formulas leave out, "
        "and such heads weigh most where the lists are short. With many conjunctions the ratio is below the "
        "formula: boolean has heads and spare room, too. Common predicates save memory in both, as there."
    )
    return Result(rows=rows, lines=lines, axes=("conjunctions", "bytes of a subscription"), note=note)


def _with_share(count: int, predicates: int, k: int, share: float) -> list[str]:
    """Expressions in which a predicate occurs in about that share of k conjunctions; none where none can."""
    # n + m = share * predicates and n + k * m = predicates
    inside = (1 - share) * predicates / (k - 1)
    common = share * predicates - inside
    if inside < 1 or common < 0:
        return []
    return _expressions(count, round(common), k, round(inside) * k)


def _expressions(count: int, common: int, k: int, inside: int, commonality: float = 0.0) -> list[str]:
    """That many predicates before the OR and inside; some of the former are the same in all expressions."""
    texts = []
    for number in range(count):
        shared = round(commonality * (common + inside))
        fixed = [f"a{at} = {-1 if at < shared else number}" for at in range(common)]
        branches = [
            " AND ".join(f"b{at} = {number}" for at in range(branch, inside, k)) for branch in range(k)
        ]
        either = [" OR ".join(branches)] if k > 1 else branches
        texts.append(" AND ".join([*fixed, *(f"({one})" for one in either)]))
    return texts


def _bytes(expressions: list[str]) -> dict[str, int]:
    ids = range(len(expressions))
    return {name: measured_bytes(ids, expressions, name)[0] for name in ALGORITHMS}


EXPERIMENT = Experiment(
    name="bittner-figures-5-2-to-5-4",
    paper="Bittner 2008",
    figure="Figures 5.2 to 5.4",
    question="How does the memory of counting compare with Boolean filtering as parameters vary?",
    run=run,
)
