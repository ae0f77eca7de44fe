"""Blocks of IPv4 or IPv6 addresses, for `ip_in`."""

import json
from ipaddress import ip_network
from typing import Any

from tamis.errors import ExpressionError
from tamis.expr import parse
from tamis.importers import forms
from tamis.importers.report import NotCarriedOverError


def in_block(term: forms.Term, block: str) -> dict[str, Any]:
    """Whether the address lies in the block. Bits beyond its length are passed over, as other engines do.

    >>> forms.expression(in_block(forms.attribute("client"), "10.0.16.1/30")) == parse(
    ...     "ip_in(client, '10.0.16.0/30')"
    ... )
    True
    """
    try:
        network = ip_network(block, strict=False)
        low, high = json.loads(parse(f"ip_in(x, '{network}')").to_json())["operands"]
    except (ValueError, ExpressionError) as error:
        raise NotCarriedOverError("cidr", f"{block!r} is not a block of addresses: {error}") from None
    return forms.test(forms.Term(f"ip({term.text})"), "BETWEEN", low, high)
