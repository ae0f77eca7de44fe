"""What a NATS server really said, byte for byte: nats-server 2.15.1 with three replicas, read from a socket.

The first group answers direct requests, as the log makes them. The second is said to whoever pulls from a
consumer. The log has none, but the server says all of it in the same form, to the same inboxes.
"""

TO_READERS = {
    "no such message": (b"HMSG _INBOX.t.8 7 34 34\r\nNATS/1.0 404 Message Not Found\r\n\r\n\r\n"),
    "nothing behind": (b"HMSG _INBOX.t.9 7 34 34\r\nNATS/1.0 404 Message Not Found\r\n\r\n\r\n"),
    "no last value": (b"HMSG _INBOX.t.10 7 27 27\r\nNATS/1.0 404 No Results\r\n\r\n\r\n"),
    "empty request": (b"HMSG _INBOX.t.11 7 30 30\r\nNATS/1.0 408 Empty Request\r\n\r\n\r\n"),
    "malformed request": (b"HMSG _INBOX.t.12 7 34 34\r\nNATS/1.0 408 Malformed Request\r\n\r\n\r\n"),
    "bad request": (b"HMSG _INBOX.t.13 7 28 28\r\nNATS/1.0 408 Bad Request\r\n\r\n\r\n"),
    "nobody": (
        b"HMSG _INBOX.t.14 7 65 65\r\n"
        b"NATS/1.0 503\r\n"
        b"Nats-Subject: $JS.API.DIRECT.GET.tamis-y-events\r\n"
        b"\r\n"
        b"\r\n"
    ),
    "one": (
        b"HMSG _INBOX.t.15 7 143 149\r\n"
        b"NATS/1.0\r\n"
        b"Nats-Stream: tamis-x-events\r\n"
        b"Nats-Subject: tamis.x.events.p0.s\r\n"
        b"Nats-Sequence: 2\r\n"
        b"Nats-Time-Stamp: 2026-11-17T18:01:37.878261608Z\r\n"
        b"\r\n"
        b"body 1\r\n"
    ),
    "batch": (
        b"HMSG _INBOX.t.batch 7 187 193\r\n"
        b"NATS/1.0\r\n"
        b"Nats-Stream: tamis-x-events\r\n"
        b"Nats-Subject: tamis.x.events.p0.s\r\n"
        b"Nats-Sequence: 1\r\n"
        b"Nats-Time-Stamp: 2026-11-17T18:01:37.814889479Z\r\n"
        b"Nats-Num-Pending: 2\r\n"
        b"Nats-Last-Sequence: 0\r\n"
        b"\r\n"
        b"body 0\r\n"
        b"HMSG _INBOX.t.batch 7 187 193\r\n"
        b"NATS/1.0\r\n"
        b"Nats-Stream: tamis-x-events\r\n"
        b"Nats-Subject: tamis.x.events.p0.s\r\n"
        b"Nats-Sequence: 2\r\n"
        b"Nats-Time-Stamp: 2026-11-17T18:01:37.878261608Z\r\n"
        b"Nats-Num-Pending: 1\r\n"
        b"Nats-Last-Sequence: 1\r\n"
        b"\r\n"
        b"body 1\r\n"
        b"HMSG _INBOX.t.batch 7 187 193\r\n"
        b"NATS/1.0\r\n"
        b"Nats-Stream: tamis-x-events\r\n"
        b"Nats-Subject: tamis.x.events.p0.s\r\n"
        b"Nats-Sequence: 3\r\n"
        b"Nats-Time-Stamp: 2026-11-17T18:01:37.962251252Z\r\n"
        b"Nats-Num-Pending: 0\r\n"
        b"Nats-Last-Sequence: 2\r\n"
        b"\r\n"
        b"body 2\r\n"
        b"HMSG _INBOX.t.batch 7 64 64\r\n"
        b"NATS/1.0 204 EOB\r\n"
        b"Nats-Num-Pending: 0\r\n"
        b"Nats-Last-Sequence: 3\r\n"
        b"\r\n"
        b"\r\n"
    ),
    "part": (
        b"HMSG _INBOX.t.batch2 7 187 193\r\n"
        b"NATS/1.0\r\n"
        b"Nats-Stream: tamis-x-events\r\n"
        b"Nats-Subject: tamis.x.events.p0.s\r\n"
        b"Nats-Sequence: 1\r\n"
        b"Nats-Time-Stamp: 2026-11-17T18:01:37.814889479Z\r\n"
        b"Nats-Num-Pending: 2\r\n"
        b"Nats-Last-Sequence: 0\r\n"
        b"\r\n"
        b"body 0\r\n"
        b"HMSG _INBOX.t.batch2 7 187 193\r\n"
        b"NATS/1.0\r\n"
        b"Nats-Stream: tamis-x-events\r\n"
        b"Nats-Subject: tamis.x.events.p0.s\r\n"
        b"Nats-Sequence: 2\r\n"
        b"Nats-Time-Stamp: 2026-11-17T18:01:37.878261608Z\r\n"
        b"Nats-Num-Pending: 1\r\n"
        b"Nats-Last-Sequence: 1\r\n"
        b"\r\n"
        b"body 1\r\n"
        b"HMSG _INBOX.t.batch2 7 64 64\r\n"
        b"NATS/1.0 204 EOB\r\n"
        b"Nats-Num-Pending: 1\r\n"
        b"Nats-Last-Sequence: 2\r\n"
        b"\r\n"
        b"\r\n"
    ),
    "too many results": (b"HMSG _INBOX.t.17 7 33 33\r\nNATS/1.0 413 Too Many Results\r\n\r\n\r\n"),
}
TO_CONSUMERS = {
    "no messages": (b"HMSG _INBOX.t.19 7 28 28\r\nNATS/1.0 404 No Messages\r\n\r\n\r\n"),
    "request timeout": (
        b"HMSG _INBOX.t.20 7 81 81\r\n"
        b"NATS/1.0 408 Request Timeout\r\n"
        b"Nats-Pending-Messages: 1\r\n"
        b"Nats-Pending-Bytes: 0\r\n"
        b"\r\n"
        b"\r\n"
    ),
    "batch too large": (
        b"HMSG _INBOX.t.7 7 47 47\r\nNATS/1.0 409 Exceeded MaxRequestBatch of 10\r\n\r\n\r\n"
    ),
    "leadership change": (b"HMSG _INBOX.t.lead 7 34 34\r\nNATS/1.0 409 Leadership Change\r\n\r\n\r\n"),
    "message too large": (
        b"HMSG _INBOX.t.9 7 96 96\r\n"
        b"NATS/1.0 409 Message Size Exceeds MaxBytes\r\n"
        b"Nats-Pending-Messages: 1\r\n"
        b"Nats-Pending-Bytes: 10\r\n"
        b"\r\n"
        b"\r\n"
    ),
    "consumer deleted": (b"HMSG _INBOX.t.gone 7 33 33\r\nNATS/1.0 409 Consumer Deleted\r\n\r\n\r\n"),
}
