"""TLS with real certificates: client and broker, broker and broker, NATS; and who is not trusted."""

import asyncio
import datetime
import ipaddress
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pubsub.inside import on_tcp, running
from pubsub.processes import hear
from servers import NatsServer
from tamis.pubsub.net.connection import UnreachableError
from tamis.pubsub.net.nats_peer import NatsPeer
from tamis.pubsub.net.nats_transport import NatsTransport
from tamis.pubsub.net.server import Setup


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

    def server(self, name: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue(name))
        return context

    def trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.file))


@pytest.fixture
def ours(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ours")


@pytest.fixture
def others(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "others")


def test_events_pass_between_brokers_and_clients(tmp_path: Path, ours: Authority) -> None:
    async def scenario() -> None:
        async with on_tcp("b1", tmp_path, {"b2": None}, tls=ours.server("b1")) as one:
            neighbours = {"b1": one.address}
            trusted = {"tls_to_neighbours": ours.trusted(), "tls": ours.server("b2")}
            async with (
                on_tcp("b2", tmp_path, neighbours, **trusted) as two,
                one.client("ann", tls=ours.trusted()) as ann,
                two.client("bob", tls=ours.trusted()) as bob,
            ):
                await ann.subscribe("all", "serial > 0")
                await bob.publish({"serial": 1})
                assert await hear(ann, {1}) == [1]

    asyncio.run(scenario())


def test_a_broker_that_is_not_trusted_is_refused(
    tmp_path: Path, ours: Authority, others: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tamis.broker")

    async def scenario() -> None:
        async with on_tcp("b1", tmp_path, {"b2": None}, tls=others.server("b1")) as one:
            with pytest.raises(UnreachableError, match=r"127.0.0.1:\d+ is not trusted: unable to get"):
                await one.client("ann", tls=ours.trusted()).connect()
            async with on_tcp("b2", tmp_path, {"b1": one.address}, tls_to_neighbours=ours.trusted()):
                while not any("is not trusted" in getattr(line, "error", "") for line in caplog.records):
                    await asyncio.sleep(0.01)
        assert not any(line.message == "link up" for line in caplog.records)

    asyncio.run(scenario())


def test_plain_text_gets_no_answer_from_a_broker_with_tls(tmp_path: Path, ours: Authority) -> None:
    async def scenario() -> None:
        async with on_tcp("b1", tmp_path, tls=ours.server("b1")) as one:
            client = one.client("ann")
            connecting = asyncio.create_task(client.connect())
            while client.trouble is None:
                await asyncio.sleep(0.01)
            assert not connecting.done()
            connecting.cancel()
            await client.close()
            async with one.client("bob", tls=ours.trusted()) as bob:
                assert await bob.publish({"x": 1}) == 1

    asyncio.run(scenario())


def test_nats_over_tls(tmp_path: Path, ours: Authority, others: Authority, nats_program: str) -> None:
    certificate, key = ours.issue("nats")
    options = ("--tls", "--tlscert", str(certificate), "--tlskey", str(key))

    async def scenario(url: str) -> None:
        with pytest.raises(UnreachableError, match="certificate verify failed"):
            await NatsPeer(url, "x", others.trusted()).open()
        transport = NatsTransport("b1", NatsPeer(url, "b1", ours.trusted()))
        async with (
            running(Setup("b1"), transport, url) as broker,
            broker.client("ann", tls=ours.trusted()) as ann,
        ):
            assert await ann.publish({"x": 1}) == 1

    with NatsServer(nats_program, tmp_path, *options) as server:
        asyncio.run(scenario(server.url.replace("nats://", "tls://")))
