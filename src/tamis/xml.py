"""XML documents as values of events: `tamis.Xml`."""

import codecs
import re

from tamis._kernel import xml_fault
from tamis.errors import XmlError

# Longer marks come first: that of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_DECLARATION = re.compile(
    rb"""<\?xml\s+version\s*=\s*["'][^"']*["']\s+encoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']"""
)
_LONGEST_DECLARATION = 256


class Xml(str):
    """An XML document, as the value of an attribute that `xpath` looks into.

    It is the text of the document. Bytes are decoded as the document says (a byte order mark, or the encoding
    in its declaration, else UTF-8). A document that is not well-formed makes every `xpath` undefined and is
    counted in `Index.stats`; with `strict` it is a `tamis.XmlError` instead. External entities are not read.

    >>> import tamis
    >>> index = tamis.Index()
    >>> index.add("dear", "xpath(doc, '/news/item[price > 5]') AND source = 'reuters'")
    >>> document = tamis.Xml(b"<news><item><price>7</price></item></news>")
    >>> index.match({"doc": document, "source": "reuters"})
    ['dear']
    >>> index.match({"doc": tamis.Xml(b"<news>"), "source": "reuters"})
    []
    """

    __slots__ = ()

    def __new__(cls, data: "bytes | bytearray | memoryview | str", *, strict: bool = False) -> "Xml":
        """Decode the document and, if `strict`, check it."""
        if isinstance(data, str):
            text = data
        else:
            try:
                text = _decoded(bytes(data))
            except (UnicodeDecodeError, LookupError) as error:
                if strict:
                    raise XmlError(str(error), 1, 1) from error
                text = ""  # not well-formed either
        if strict and (fault := xml_fault(text)) is not None:
            line, column, message = fault
            raise XmlError(message, line, column)
        return super().__new__(cls, text)

    def __repr__(self) -> str:
        """The document as a string, marked as XML."""
        return f"Xml({super().__repr__()})"


def _decoded(data: bytes) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding)
    if data.startswith(b"<\x00"):
        return data.decode("utf-16-le")
    if data.startswith(b"\x00<"):
        return data.decode("utf-16-be")
    declared = _DECLARATION.match(data[:_LONGEST_DECLARATION])
    return data.decode(declared[1].decode("ascii") if declared else "utf-8")
