"""The fixture that calls the command line, shared with the tests of commands."""

from cli.conftest import tamis  # noqa: F401 - a fixture
