"""XML documents and XPath expressions from a DTD: a news format and an auction site.

>>> from tamis_lab.workloads.xml import documents, paths
>>> len(list(documents(2, size=2000))), len(list(paths(5)))
(2, 5)
"""

from tamis_lab.workloads.xml.documents import documents
from tamis_lab.workloads.xml.dtd import KINDS, Dtd, dtd
from tamis_lab.workloads.xml.paths import paths

__all__ = ["KINDS", "Dtd", "documents", "dtd", "paths"]
