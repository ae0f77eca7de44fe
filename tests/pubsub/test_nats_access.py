"""Who may reach a log on NATS: users, permissions and TLS are the server's; a wrong one gets a plain error.

A client with a grant cannot read the events past its copies: the permissions that docs/pubsub.md lists are
enough for it to subscribe, read and acknowledge. Those of a publisher are enough to publish, also after the
connection was made again and when an answer was lost, and for nothing else. The tests read them in the docs.
"""

import asyncio
import base64
import datetime
import ipaddress
import itertools
import json
import os
import random
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nkeys
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pubsub.logs import run
from pubsub.nats_proxy import NatsProxy
from pubsub.test_site import drain, heard, router_of
from servers import NatsServer
from tamis.pubsub import ForbiddenError, LogError, LogUnavailableError, connect, keys
from tamis.pubsub.log import EVENTS, STATE, Entry, nats_answers, open_log
from tamis.pubsub.log import nats as nats_log
from tamis.pubsub.log.nats import NatsLog
from tamis.pubsub.records import EventHeader, Grant
from tamis.pubsub.router.retention import Retention
from tamis.pubsub.sites.network import Network


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


def test_a_server_that_wants_certificates_of_its_clients(nats_program: str, tmp_path: Path) -> None:
    ours, others = Authority(tmp_path / "ours"), Authority(tmp_path / "others")
    certificate, key = ours.issue("nats")
    options = (
        "--tlsverify",
        "--tlscert",
        str(certificate),
        "--tlskey",
        str(key),
        "--tlscacert",
        str(ours.file),
    )

    def both(authority: Authority) -> Path:
        """A certificate and its key in one file."""
        made = authority.issue("ann")
        made[0].write_bytes(made[0].read_bytes() + made[1].read_bytes())
        made[0].chmod(0o600)
        return made[0]

    async def main(url: str) -> None:
        async with connect(f"{url}/site?certificate={both(ours)}", authority=str(ours.file)) as site:
            assert await (await site.publisher("bob")).publish({"n": 1}) == [1]
        wrong = (f"{url}/site", f"{url}/site?certificate={both(others)}")
        refused = await asyncio.gather(
            *(open_log(each, authority=str(ours.file)) for each in wrong), return_exceptions=True
        )
        assert [type(each) for each in refused] == [LogUnavailableError] * 2

    with NatsServer(nats_program, tmp_path, *options) as server:
        run(lambda: main(server.url.replace("nats://", "tls://")))


def signed(claims: dict[str, Any], by: nkeys.KeyPair) -> str:
    """A JWT as NATS has them."""

    def part(content: bytes) -> str:
        return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

    head = part(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
    body = part(
        json.dumps({"jti": uuid.uuid4().hex, "iat": 1, "iss": by.public_key.decode(), **claims}).encode()
    )
    return f"{head}.{body}.{part(by.sign(f'{head}.{body}'.encode()))}"


def key_pair(prefix: int) -> nkeys.KeyPair:
    return nkeys.from_seed(nkeys.encode_seed(os.urandom(32), prefix))


LIMITS = dict.fromkeys(
    (
        "subs",
        "data",
        "payload",
        "conn",
        "leaf",
        "imports",
        "exports",
        "mem_storage",
        "disk_storage",
        "streams",
    ),
    -1,
)


def test_credentials_of_an_account(nats_program: str, tmp_path: Path) -> None:
    """Accounts of NATS keep tenants apart: each has streams of its own, under the same names."""
    operator = key_pair(nkeys.PREFIX_BYTE_OPERATOR)
    about = {"type": "operator", "version": 2}
    operator_jwt = signed({"name": "o", "sub": operator.public_key.decode(), "nats": about}, operator)
    preload, files = [], {}
    for name in ("red", "blue", "system"):
        account, user = key_pair(nkeys.PREFIX_BYTE_ACCOUNT), key_pair(nkeys.PREFIX_BYTE_USER)
        public = account.public_key.decode()
        limits = LIMITS if name != "system" else {**LIMITS, "mem_storage": 0, "disk_storage": 0}
        claims = {"limits": {**limits, "consumer": -1, "wildcards": True}, "type": "account", "version": 2}
        account_jwt = signed({"name": name, "sub": public, "nats": claims}, operator)
        preload.append(f"{public}: {account_jwt}")
        claims = {"subs": -1, "data": -1, "payload": -1, "type": "user", "version": 2}
        user_jwt = signed({"name": name, "sub": user.public_key.decode(), "nats": claims}, account)
        files[name] = tmp_path / f"{name}.creds"
        files[name].write_text(
            f"-----BEGIN NATS USER JWT-----\n{user_jwt}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user.seed.decode()}\n------END USER NKEY SEED------\n"
        )
        files[name].chmod(0o600)
    config = tmp_path / "nats.conf"
    config.write_text(
        f"operator: {operator_jwt}\nsystem_account: {preload[-1].partition(':')[0]}\nresolver: MEMORY\n"
        f"resolver_preload: {{\n" + "\n".join(preload) + "\n}\n"
    )
    hostile = [b"", b"garbage", b"\xff\xfe\0", files["red"].read_bytes()[:300]]
    hostile.append(files["red"].read_bytes().replace(b"SU", b"XX", 1))
    hostile.append(files["red"].read_bytes().replace(b"\n", b""))
    chance, whole = random.Random(7), files["red"].read_bytes()
    for _ in range(16):
        place, other = chance.randrange(len(whole)), chance.randbytes(chance.randrange(4))
        hostile.append(whole[:place] + other + whole[place + chance.choice([0, 1, 1, 40]) :])

    async def main(url: str) -> None:
        async with connect(f"{url}/site", credentials=str(files["red"])) as site:
            assert await (await site.publisher("bob")).publish([{"n": 1}, {"n": 2}]) == [1, 2]
        async with connect(f"{url}/site", credentials=str(files["blue"])) as site:
            assert await site.log.end(EVENTS) == 0, "tenants share nothing"
        options: list[dict[str, str]] = [{}, {"credentials": "/none"}, {"authority": "/none"}]
        for number, content in enumerate(hostile):
            wrong = tmp_path / f"wrong-{number}"
            wrong.write_bytes(content)
            wrong.chmod(0o600)
            options += [{"credentials": str(wrong)}, {"authority": str(wrong)}]
        # All at once: some are tried for seconds.
        refused = await asyncio.gather(
            *(open_log(f"{url}/site", **each) for each in options), return_exceptions=True
        )
        for each, given in zip(refused, options, strict=True):
            if isinstance(each, NatsLog):  # a byte that did not matter
                assert given.get("credentials", "").startswith(str(tmp_path / "wrong-"))
                await each.close()
            else:
                assert isinstance(each, LogError), (given, each)

    with NatsServer(nats_program, tmp_path, "-c", str(config)) as server:
        run(lambda: main(server.url))


DOCS = Path(__file__).parents[2] / "docs" / "pubsub.md"


def documented(which: int, name: str) -> str:
    """What the docs allow subscribers (0), publishers (1) and neighbours (2), as a server reads it."""
    blocks = re.findall(r"```\n((?: +publish +tamis\.SITE.*\n)(?:.*\n)*?)```", DOCS.read_text())
    publish, subscribe = blocks[which].replace("SITE", "site").replace("NAME", name).split("subscribe")
    kinds = {"publish": publish.split()[1:], "subscribe": subscribe.split()}
    return ", ".join(f"{kind}: {json.dumps(subjects)}" for kind, subjects in kinds.items())


@pytest.fixture
def guarded(nats_program: str, tmp_path: Path) -> Iterator[str]:
    """The address of a server with the permissions that the docs show."""
    users = [
        "{user: router, password: secret}",
        f"{{user: ann, password: hers, permissions: {{{documented(0, 'ann')}}}}}",
        f"{{user: bob, password: his, permissions: {{{documented(1, 'bob')}}}}}",
        f"{{user: rome, password: theirs, permissions: {{{documented(2, 'rome')}}}}}",
    ]
    config = tmp_path / "nats.conf"
    config.write_text("authorization { users = [" + "\n".join(users) + "] }\n")
    with NatsServer(nats_program, tmp_path, "-c", str(config)) as server:
        yield server.url.removeprefix("nats://")


def soon(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.2) -> None:
    """Do not wait long for what never comes: a server does not answer what is forbidden."""
    monkeypatch.setattr(nats_log, "ANSWER_SECONDS", seconds)
    monkeypatch.setattr(nats_answers, "ANSWER_SECONDS", seconds)
    monkeypatch.setattr(nats_log, "RETRIES", 1)


def test_a_client_with_few_permissions_gets_its_copies_and_no_event(
    guarded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        with pytest.raises(LogUnavailableError):
            async with connect(f"nats://{guarded}/site"):
                pass
        async with connect(f"nats://router:secret@{guarded}/site", partitions=1) as site:
            await site.log.append(STATE, [Entry(keys.GRANT, "ann", Grant(attributes=("price",)).body())])
            async with connect(f"nats://ann:hers@{guarded}/site?inbox=_INBOX_ann") as hers:
                ann = await hers.subscriber("ann")
                await ann.subscribe("all", "price > 0")
                seen: list[bytes] = []

                async def see(message: Any) -> None:
                    seen.append(message.data)

                # What the server answers to others is not for her ears either.
                await hers.log._client.subscribe("_INBOX.>", cb=see)  # type: ignore[attr-defined]
                await (await site.publisher("bob")).publish([{"price": 1, "secret": 2}, {"price": 0}])
                await drain(router_of(site))
                assert await heard(ann) == [{"price": 1}]
                await ann.acknowledge()
                soon(monkeypatch)
                for forbidden in (
                    hers.log.fetch(EVENTS, [1]),
                    hers.log.append(EVENTS, [Entry("p0", "x", b"{}")]),
                    hers.log.append(STATE, [Entry(keys.GRANT, "ann", b"")]),
                ):
                    with pytest.raises(LogError):
                        await forbidden
                assert not any(b"secret" in data for data in seen)

    run(main)


def test_a_publisher_with_few_permissions_publishes_under_its_name_alone(
    guarded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with (
            connect(f"nats://router:secret@{guarded}/site", partitions=1) as site,
            connect(f"nats://bob:his@{guarded}/site?inbox=_INBOX_bob") as his,
        ):
            ann = await site.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            bob = await his.publisher("bob", timeout=1)
            assert await bob.publish([{"n": 1}, {"n": 2}]) == [1, 2]
            header = EventHeader("eve").body()
            forged = EventHeader("bob", "rome", targets=(("site", 1),)).body()
            # Under his own sessions he can write what he wants, and the router reads it as his.
            mine = [
                Entry("p0", keys.session_detail("bob", "a1"), text + b'\n{"n":3}')
                for text in (header, forged)
            ]
            await his.log.append(EVENTS, mine)
            own, eves = keys.session_detail("bob", "a1"), ("p0", keys.session_detail("eve", "a2"))
            await site.log.append(EVENTS, [Entry(*eves, b"{}\n{}")])
            soon(monkeypatch)
            for topic, detail in (
                *(("p0", detail) for detail in ("s.eve.a1", "a1", "link-rome", own + ".x", keys.DROPPED)),
                *((topic, own) for topic in ("p4", "p999", keys.SEEN, keys.LINK, "pizza")),
            ):
                with pytest.raises(LogError):
                    await his.log.append(EVENTS, [Entry(topic, detail, header + b'\n{"n":4}')])
            for forbidden in (
                his.log.read(EVENTS),
                his.log.fetch(EVENTS, [1]),
                his.log.last(EVENTS, [eves]),
                his.log.trim(EVENTS, 99, "p0"),
                # What is asked for in the content is not answered under a subject that is allowed.
                his.log._direct(  # type: ignore[attr-defined]
                    EVENTS, [{"seq": 1}], are_batches=False, subject=f"tamis.site.events.p0.{own}"
                ),
                his.log.append(STATE, [Entry(keys.GRANT, "bob", b"")]),
            ):
                with pytest.raises(LogError):
                    await forbidden
            monkeypatch.undo()
            assert {record.topic for record in await site.log.read(EVENTS)} == {"p0"}
            await drain(router_of(site))
            assert await heard(ann) == [{"n": 1}, {"n": 2}]

    run(main)


def test_what_a_server_forbids_is_an_error_at_once(guarded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server does not answer what is forbidden; it says so, and nobody waits until the time is over."""
    for module in (nats_log, nats_answers):
        monkeypatch.setattr(module, "ANSWER_SECONDS", 100)

    async def main() -> None:
        async with (
            connect(f"nats://router:secret@{guarded}/site", partitions=1) as site,
            connect(f"nats://bob:his@{guarded}/site?inbox=_INBOX_bob") as his,
        ):
            await site.log.append(EVENTS, [Entry("p0", keys.session_detail("eve", "a2"), b"{}\n{}")])
            log: Any = his.log
            for _ in range(2):
                for name, forbidden in (
                    ("DIRECT.GET", log.read(EVENTS)),
                    ("DIRECT.GET", log.fetch(EVENTS, [1])),
                    ("DIRECT.GET", log.last(EVENTS, [("p0", keys.session_detail("eve", "a2"))])),
                    ("STREAM.PURGE", log.trim(EVENTS, 99, "p0")),
                ):
                    with pytest.raises(LogError, match=f"does not allow {name}"):
                        await forbidden
            assert all("msg.get" in subject for subject in log._refusals.kept)

    run(main)


def test_an_append_that_a_server_forbids_is_an_error_at_once(
    guarded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever in a batch it is forbidden; what follows on the same connection is not refused for it."""
    for module in (nats_log, nats_answers):
        monkeypatch.setattr(module, "ANSWER_SECONDS", 100)

    async def main() -> None:
        async with (
            connect(f"nats://router:secret@{guarded}/site", partitions=1) as site,
            connect(f"nats://bob:his@{guarded}/site?inbox=_INBOX_bob") as his,
        ):
            mine, eves = keys.session_detail("bob", "a1"), keys.session_detail("eve", "a1")
            for details in ([eves], [eves, mine], [mine, eves], [mine, eves, mine], [eves] * 1_000):
                with pytest.raises(ForbiddenError, match=r"allow to publish to .*s\.eve\.a1; nothing was"):
                    await his.log.append(EVENTS, [Entry("p0", detail, b"{}\n{}") for detail in details])
            eve, bob = await his.publisher("eve", timeout=100), await his.publisher("bob", timeout=100)
            published = 0
            for events in ([{"n": 1}], [{"n": 1}] * 1_000):
                with pytest.raises(ForbiddenError):
                    await eve.publish(events)
                both = await asyncio.gather(eve.publish(events), bob.publish(events), return_exceptions=True)
                assert isinstance(both[0], ForbiddenError)
                published += len(events)
                assert both[1] == list(range(published - len(events) + 1, published + 1))
            assert await site.log.end(EVENTS) == published
            assert not his.log._refusals.appending  # type: ignore[attr-defined]

    run(main)


def test_a_refusal_is_not_taken_for_that_of_another_case(
    nats_program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the client library tells of a refusal is in lower case."""
    for module in (nats_log, nats_answers):
        monkeypatch.setattr(module, "ANSWER_SECONDS", 100)
    config = tmp_path / "nats.conf"
    config.write_text(
        "authorization { users = [{user: bob, password: his, permissions: "
        '{publish: {allow: ">", deny: "tamis.site.state.sub.Ann.*"}, subscribe: ">"}}] }\n'
    )

    async def main(address: str) -> None:
        log = await open_log(f"nats://bob:his@{address}/site")
        for names in (("Ann", "ann"), ("ann", "Ann"), ("Ann", "aNN", "ann", "Ann"), ("Ann", "Ann")):
            for size in (1, 3):
                ended = await asyncio.gather(
                    *(log.append(STATE, [Entry("sub", f"{name}.s", b"{}")] * size) for name in names),
                    return_exceptions=True,
                )
                refused = [name for name, each in zip(names, ended, strict=True) if not isinstance(each, int)]
                assert refused == [name for name in names if name == "Ann"], ended
                for each in ended:
                    assert isinstance(each, int) or "sub.Ann.s; nothing was written" in str(each)
        await log.close()

    with NatsServer(nats_program, tmp_path, "-c", str(config)) as server:
        run(lambda: main(server.url.removeprefix("nats://")))


def test_a_publisher_with_few_permissions_goes_on_after_its_connection_was_made_again(guarded: str) -> None:
    """It had to read events, which it may not, and raised after every reconnect."""

    async def main() -> None:
        async with (
            NatsProxy(f"nats://{guarded}") as proxy,
            connect(f"nats://router:secret@{guarded}/site", partitions=1) as site,
            connect(f"{proxy.url.replace('//', '//bob:his@')}/site?inbox=_INBOX_bob") as his,
        ):
            ann, router = await site.subscriber("ann"), router_of(site)
            await ann.subscribe("all", "TRUE")
            bob = await his.publisher("bob", timeout=20)
            published = 0
            for is_trimmed in (False, False, True):
                published += len(await bob.publish([{"n": published}, {"n": published + 1}]))
                if is_trimmed:  # the last of the session is gone, as nobody needs it
                    await (await site.publisher("carl")).publish({"n": -1})
                    await drain(router)
                    assert len(await heard(ann)) == published + 1
                    await ann.acknowledge()
                    await router.table.catch_up()
                    router.table.time += 10**12
                    keeping = Retention(site.log, site.settings, router.table, router.counters)
                    await keeping.tidy()
                    assert [record.detail[:7] for record in await site.log.read(EVENTS)] == ["s.carl."]
                generation = his.log.generation
                proxy.cut()
                proxy.mend()
                while his.log.generation == generation:
                    await asyncio.sleep(0.02)
            published += len(await bob.publish({"n": published}))
            await drain(router)
            assert await heard(ann) == [{"n": published - 1}]

    run(main)


def test_a_publisher_with_few_permissions_knows_after_a_lost_answer(
    guarded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with (
            NatsProxy(f"nats://{guarded}") as proxy,
            connect(f"nats://router:secret@{guarded}/site", partitions=1) as site,
            connect(f"{proxy.url.replace('//', '//bob:his@')}/site?inbox=_INBOX_bob") as his,
        ):
            bob = await his.publisher("bob", timeout=20)
            assert await bob.publish({"n": 0}) == [1]
            lost: list[bytes] = []

            def is_lost(body: bytes) -> bool:
                """The first answer to what is published."""
                if not lost and b'"seq"' in body:
                    lost.append(body)
                    proxy.cut()  # nobody waits for what does not come
                    proxy.mend()
                    return True
                return False

            proxy.is_lost = is_lost
            soon(monkeypatch, 1)
            assert await bob.publish([{"n": 1}, {"n": 2}]) == [2, 3]
            assert lost
            assert await bob.publish({"n": 3}) == [4]
            assert await site.log.end(EVENTS) == 4

    run(main)


def test_a_neighbour_with_few_permissions_takes_events_and_changes_nothing_else(
    guarded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with (
            connect(f"nats://router:secret@{guarded}/site", name="site", partitions=1) as site,
            connect(f"sqlite:{tmp_path}/rome.db", name="rome", partitions=1) as rome,
        ):
            ann = await rome.subscriber("ann")
            await ann.subscribe("all", "TRUE")
            url = f"nats://rome:theirs@{guarded}/site?inbox=_INBOX_rome"
            routers = [router_of(site), router_of(rome)]
            openings: list[Any] = [
                {"rome": lambda: open_log(f"sqlite:{tmp_path}/rome.db")},
                {"site": lambda: open_log(url)},
            ]
            rounds = itertools.count()
            networks = [
                Network(r.log, r.settings, r.table, neighbours, r.counters, clock=lambda: next(rounds) / 10)
                for r, neighbours in zip(routers, openings, strict=True)
            ]

            async def work() -> None:
                for _ in range(12):
                    for router, network in zip(routers, networks, strict=True):
                        await router.step()
                        await network.step()

            await work()
            await (await site.publisher("bob")).publish({"n": 1})
            await work()
            assert await heard(ann) == [{"n": 1}]
            assert networks[1].links["site"].trouble is None
            for network in networks:
                await network.close()
            theirs = await open_log(url)
            soon(monkeypatch)
            for forbidden in (
                theirs.append(EVENTS, [Entry("p0", "link-rome", b"{}\n{}")]),
                theirs.append(STATE, [Entry(keys.GRANT, "ann", b"")]),
                theirs.append(STATE, [Entry(keys.INTEREST, "site.x", b"")]),
                theirs.trim(EVENTS, 99, "p0"),
            ):
                with pytest.raises(LogError):
                    await forbidden
            await theirs.close()

    run(main)
