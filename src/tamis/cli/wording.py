"""Words for people: counts with their nouns."""


def counted(number: int, noun: str) -> str:
    """A number and the noun in the form that goes with it.

    >>> counted(1, "rule"), counted(2_000, "rule")
    ('1 rule', '2,000 rules')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
