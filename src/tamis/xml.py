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
# Without a mark, by the first character of a document.
_STARTS = (
    (b"<\x00\x00\x00", "utf-32-le"),
    (b"\x00\x00\x00<", "utf-32-be"),
    (b"<\x00", "utf-16-le"),
    (b"\x00<", "utf-16-be"),
)
_DECLARATION = re.compile(
    rb"""<\?xml\s+version\s*=\s*["'][^"']*["']\s+encoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']"""
)
_LONGEST_DECLARATION = 256
# Whoever writes a document chooses its encoding. Python also has codecs that are none of texts, that take
# quadratic time (punycode, idna) or that hide markup (UTF-7, escapes): only those of character sets are used.
_CHARACTER_SETS = re.compile(
    r"ascii|utf-8|utf-16(-[lb]e)?|utf-32(-[lb]e)?|iso8859-\d+|cp\d+|koi8-[rtu]|mac-\w+|tis-620|hp-roman8|ptcp154|kz1048"
    r"|shift_jis(_2004|x0213)?|euc_\w+|iso2022_\w+|gb2312|gbk|gb18030|hz|big5(hkscs)?|johab"
)


class Xml(str):
    """An XML document, as the value of an attribute for `xpath`.

    It is the text of the document. Bytes are decoded as the document says (a byte order mark, or the encoding
    in its declaration, else UTF-8). A document that is not well-formed makes every `xpath` undefined and is
    counted in `Index.stats`; with `strict` it is a `tamis.XmlError`. External entities are never read.

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
            except (UnicodeError, LookupError) as error:
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
    for start, encoding in _STARTS:
        if data.startswith(start):
            return data.decode(encoding)
    declared = _DECLARATION.match(data[:_LONGEST_DECLARATION])
    if declared is None:
        return data.decode("utf-8")
    name = declared[1].decode("ascii")
    if _CHARACTER_SETS.fullmatch(codecs.lookup(name).name) is None:
        raise LookupError(f"the encoding {name} is not that of a character set")
    return data.decode(name)
