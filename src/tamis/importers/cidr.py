"""A block of IPv4 addresses as a regular expression over their dotted text.

Addresses are strings in events. A block fixes some octets, leaves some free, and may restrict one to a range.
IPv6 addresses have several spellings each, so no pattern of reasonable size finds them all.
"""

from ipaddress import IPv4Network, ip_network

from tamis.importers.report import NotCarriedOverError

_ANY_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"


def pattern(block: str) -> str:
    r"""The regular expression that the addresses of a block match, and nothing else.

    >>> pattern("10.0.16.0/30")
    '^10\\.0\\.16\\.(?:0|1|2|3)$'
    """
    try:
        network = ip_network(block, strict=False)
    except ValueError as error:
        raise NotCarriedOverError("cidr", f"{block!r} is no block of addresses: {error}") from None
    if not isinstance(network, IPv4Network):
        raise NotCarriedOverError("cidr of IPv6", "an IPv6 address has several spellings, and this is text")
    fixed, bits = divmod(network.prefixlen, 8)
    octets = list(network.network_address.packed)
    parts = [str(octet) for octet in octets[:fixed]]
    if fixed < 4 and bits:
        size = 1 << (8 - bits)
        numbers = range(octets[fixed], octets[fixed] + size)
        parts.append("(?:" + "|".join(str(number) for number in numbers) + ")")
    parts += [_ANY_OCTET] * (4 - len(parts))
    return "^" + "\\.".join(parts) + "$"
