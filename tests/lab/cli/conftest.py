"""The fixture that calls the command line, shared with the library's own commands."""

from cli.conftest import tamis  # noqa: F401 - a fixture
