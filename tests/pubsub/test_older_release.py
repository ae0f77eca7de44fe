"""A rolling upgrade with routers that really are older: the Python of an earlier commit, over today's kernel.

Under load, routers are replaced one after another, the older ones in order or with SIGKILL; then the upgrade
is taken back. A site of the older release and one of this one are neighbours meanwhile.
"""

import asyncio
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

import tamis
from pubsub.logs import run
from pubsub.random_cluster_history import until_known
from pubsub.router_processes import RouterProcess
from pubsub.test_killed_processes import hear_all, judge, load
from tamis.pubsub import connect

OLDER = "5248277"
"""The last commit before what this release changed in records and routers."""
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the older package; this needs the history of the repository."""
    folder = tmp_path_factory.mktemp("older")
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", OLDER, "src/tamis"], capture_output=True, check=False
    )
    if archive.returncode:
        pytest.skip(f"no commit {OLDER} in this checkout")
    subprocess.run(["tar", "x", "-C", str(folder)], input=archive.stdout, check=True)
    for kernel in Path(tamis.__file__).parent.glob("_kernel*.so"):
        shutil.copy(kernel, folder / "src" / "tamis")
    return folder / "src"


def config(folder: Path, url: str, site: str, name: str, neighbours: dict[str, str]) -> str:
    path = folder / f"{name}.toml"
    others = "".join(f'{other} = "{there}"\n' for other, there in neighbours.items())
    path.write_text(
        f'log = "{url}"\nsite = "{site}"\nname = "{name}"\nlease_seconds = 2\nlink_seconds = 2\nbatch = 7\n'
        f"[neighbours]\n{others}"
    )
    return str(path)


@pytest.mark.slow
@pytest.mark.timeout(0)  # a busy machine is no fault
def test_routers_of_the_release_before_and_of_this_one(older: Path, log_url: str, tmp_path: Path) -> None:
    is_file = log_url.startswith("sqlite:")
    urls = {
        name: log_url.replace("site.db", f"{name}.db") if is_file else f"{log_url}-{name}" for name in "ab"
    }
    with ExitStack() as stack:

        def start(site: str, name: str, source: Path | None) -> RouterProcess:
            other = "b" if site == "a" else "a"
            file = config(tmp_path, urls[site], site, name, {other: urls[other]})
            return stack.enter_context(RouterProcess(tmp_path, file, name=name, source=source))

        async def ready(router: RouterProcess) -> RouterProcess:
            await asyncio.to_thread(router.until, "ready")
            return router

        async def main() -> None:
            async with connect(urls["a"], name="a") as a, connect(urls["b"], name="b") as b:
                for site in (a, b):
                    await (await site.subscriber("all")).subscribe("s", "TRUE")
                at_a = [await ready(start("a", f"old-{place}", older)) for place in range(2)]
                at_b = await ready(start("b", "old-b", older))
                for site in (a, b):
                    await until_known(site, "all", "TRUE")
                ending, done = asyncio.Event(), [[], []]  # type: ignore[var-annotated]
                publishing = [
                    asyncio.create_task(load(site, name, ending, list_))
                    for site, name, list_ in zip((a, b), ("bob", "carl"), done, strict=True)
                ]
                await asyncio.sleep(1)
                at_a.append(await ready(start("a", "new-0", None)))  # beside the old ones
                await asyncio.sleep(2)
                assert at_a[0].stop() == 0
                await asyncio.sleep(1)
                at_a.append(await ready(start("a", "new-1", None)))
                at_a[1].kill()  # the last old one of site a ends without a word; b is still old
                await asyncio.sleep(4)
                new_b = await ready(start("b", "new-b", None))
                at_b.kill()
                await asyncio.sleep(4)
                # And back.
                await ready(start("a", "old-again", older))
                for router in (at_a[2], at_a[3]):
                    router.kill()
                await ready(start("b", "old-b-again", older))
                assert new_b.stop() == 0
                await asyncio.sleep(4)
                ending.set()
                await asyncio.gather(*publishing)
                wanted = [*done[0], *done[1]]
                assert min(map(len, done)) > 20
                for site in (a, b):
                    judge(await hear_all(site, "all", wanted, 600))

        run(main, 1_500)
