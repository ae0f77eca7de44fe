"""Who may reach a log on NATS: users, permissions and TLS are the server's; a wrong one gets a plain error.

A client with a grant cannot read the events past its copies: the permissions that docs/pubsub.md lists are
enough for it to subscribe, read and acknowledge.
"""

import datetime
import ipaddress
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pubsub.logs import run
from pubsub.test_site import drain, heard, router_of
from servers import NatsServer
from tamis.pubsub import LogError, LogUnavailableError, connect, keys
from tamis.pubsub.log import EVENTS, STATE, Entry
from tamis.pubsub.records import Grant


class Authority:
    """A certificate authority that signs certificates for 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, folder.name)])
        certificate = (
            self._about(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / "authority.pem"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def _about(self, subject: x509.Name, key: Any) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
        )

    def issue(self, name: str) -> tuple[Path, Path]:
        """Files with a certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        certificate = (
            self._about(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]), key.public_key())
            .add_extension(x509.SubjectAlternativeName([address]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        files = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        pkcs8, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, pkcs8, plain))
        return files


def test_a_server_with_tls_is_reached_by_those_who_trust_it(nats_program: str, tmp_path: Path) -> None:
    ours, others = Authority(tmp_path / "ours"), Authority(tmp_path / "others")
    certificate, key = ours.issue("nats")
    options = ("--tls", "--tlscert", str(certificate), "--tlskey", str(key))

    async def main(url: str) -> None:
        async with connect(f"{url}/site", authority=str(ours.file)) as site:
            assert await (await site.publisher("bob")).publish({"n": 1}) == [1]
        with pytest.raises(LogUnavailableError, match="cannot reach NATS"):
            async with connect(f"{url}/site", authority=str(others.file)):
                pass

    with NatsServer(nats_program, tmp_path, *options) as server:
        run(lambda: main(server.url.replace("nats://", "tls://")))


PERMISSIONS = """
authorization {{
  users = [
    {{user: router, password: secret}}
    {{user: ann, password: hers, permissions: {{
      publish: ["tamis.site.state.sub.ann.>", "tamis.site.state.read.ann", "tamis.site.state.queue.ann",
                "tamis.site.wake.*", "$JS.API.STREAM.INFO.*", "$JS.API.STREAM.MSG.GET.tamis-site-state",
                "$JS.API.STREAM.MSG.GET.tamis-site-queues", "$JS.API.DIRECT.GET.tamis-site-queues",
                "$JS.API.DIRECT.GET.tamis-site-state"]
      subscribe: ["_INBOX.>", "tamis.site.wake.*"]
    }}}}
  ]
}}
"""


def test_a_client_with_few_permissions_gets_its_copies_and_no_event(
    nats_program: str, tmp_path: Path
) -> None:
    config = tmp_path / "nats.conf"
    config.write_text(PERMISSIONS.format())

    async def main(address: str) -> None:
        with pytest.raises(LogUnavailableError):
            async with connect(f"nats://{address}/site"):
                pass
        async with connect(f"nats://router:secret@{address}/site", partitions=1) as site:
            await site.log.append(STATE, [Entry(keys.GRANT, "ann", Grant(attributes=("price",)).body())])
            async with connect(f"nats://ann:hers@{address}/site") as hers:
                ann = await hers.subscriber("ann")
                await ann.subscribe("all", "price > 0")
                await (await site.publisher("bob")).publish([{"price": 1, "secret": 2}, {"price": 0}])
                await drain(router_of(site))
                assert await heard(ann) == [{"price": 1}]
                await ann.acknowledge()
                for forbidden in (
                    hers.log.fetch(EVENTS, [1]),
                    hers.log.append(EVENTS, [Entry("p0", "x", b"{}")]),
                    hers.log.append(STATE, [Entry(keys.GRANT, "ann", b"")]),
                ):
                    with pytest.raises(LogError):
                        await forbidden

    with NatsServer(nats_program, tmp_path, "-c", str(config)) as server:
        run(lambda: main(server.url.removeprefix("nats://")))
