"""Headers read here are those that the client library reads, whatever the bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client

from tamis.pubsub.log.nats_headers import plain_headers, read_headers_faster

PIECES = [
    b"Nats-Sequence",
    b":",
    b": ",
    b" ",
    b"7",
    b"\r\n",
    b"\n",
    b"\r",
    b"\t",
    b"\xc3\xa9",
    b"\x00",
    b"A",
    b"\x0b",
    b"",
]


@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=16).map(b"".join))
def test_as_the_library_reads_them(raw: bytes) -> None:
    client = Client()
    before = client._parse_header_lines(raw)
    read_headers_faster(client)
    assert client._parse_header_lines(raw) == before
    assert plain_headers(raw) in (None, before)


def test_what_servers_write_is_read_here() -> None:
    raw = b"Nats-Stream: s\r\nNats-Subject: a.b.>\r\nNats-Sequence: 12\r\nX: a: b, c\r\n\r\n"
    assert plain_headers(raw) == Client._parse_header_lines(raw)


@pytest.mark.parametrize("other", [None, lambda raw: {}, lambda raw: 1 / 0])
def test_another_release_of_the_library_keeps_its_own(other: object) -> None:
    class Later:
        _parse_header_lines = staticmethod(other) if other is not None else None

    client = Later()
    read_headers_faster(client)  # type: ignore[arg-type]
    assert client._parse_header_lines is other
