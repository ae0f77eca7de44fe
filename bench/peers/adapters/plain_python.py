"""Every rule is a compiled Python function, called for every event: the solution without a package."""

from common import Match, drive


def build(_ids: list[int], rules: list[str]) -> Match:
    """Compile the rules."""
    names = {"NAN": float("nan")}
    compiled = [eval(f"lambda e: {rule}", names) for rule in rules]
    return lambda event: sum(1 for rule in compiled if rule(event))


if __name__ == "__main__":
    drive(build)
