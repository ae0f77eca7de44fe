"""An S3 server on loopback that answers one request at a time: `python object_store.py`.

moto looks whether an object is there and then writes it; with several threads, two writers may both be the
first. A real store promises that one of them is.
"""

import threading
from collections.abc import Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

_ONE = threading.Lock()
_APPLICATION = DomainDispatcherApplication(create_backend_app)


def one_at_a_time(environment: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    with _ONE:
        return [b"".join(_APPLICATION(environment, start_response))]


if __name__ == "__main__":
    run_simple("127.0.0.1", 0, one_at_a_time, threaded=True)
