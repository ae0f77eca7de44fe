"""Checks that driver and executors run the same release: another one may read an index differently."""

from tamis.errors import TamisError


def own_release() -> str:
    """The release of this process.

    >>> own_release().count(".")
    2
    """
    from tamis import __version__  # noqa: PLC0415 - asked for where it runs, not where a task was made

    return __version__


def refuse_other_release(drivers: str) -> None:
    """Raise if this process, an executor's, runs another release than the driver.

    >>> refuse_other_release(own_release())
    >>> refuse_other_release("0.0.1")
    Traceback (most recent call last):
    ...
    tamis.errors.TamisError: the driver runs Tamis 0.0.1 and this executor ...: install the same ...
    """
    if drivers != own_release():
        raise TamisError(
            f"the driver runs Tamis {drivers} and this executor {own_release()}: install the same release "
            "on all hosts, or ship it with spark.archives"
        )
