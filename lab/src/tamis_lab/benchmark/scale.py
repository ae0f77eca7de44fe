"""Sizes as people write them: 10K, 1M."""

_FACTORS = {"K": 1_000, "M": 1_000_000}


def parse_size(text: str) -> int:
    """Read a size.

    >>> parse_size("10K"), parse_size("1.5m"), parse_size("250")
    (10000, 1500000, 250)
    """
    digits = text.strip().upper()
    factor = _FACTORS.get(digits[-1:], 1)
    try:
        size = float(digits[:-1] if factor > 1 else digits) * factor
    except ValueError:
        raise ValueError(f"not a size: {text!r}") from None
    if size < 1 or size != int(size):
        raise ValueError(f"not a size: {text!r}")
    return int(size)


def format_size(size: int) -> str:
    """Write a size.

    >>> format_size(10_000), format_size(1_000_000), format_size(250)
    ('10K', '1M', '250')
    """
    for suffix, factor in reversed(_FACTORS.items()):
        if size >= factor and size % factor == 0:
            return f"{size // factor}{suffix}"
    return str(size)
