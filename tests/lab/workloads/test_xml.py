"""Documents and paths from a DTD."""

import pytest
from lxml import etree

from tamis_lab.workloads.xml import KINDS, documents, dtd, paths
from tamis_lab.workloads.xml.dtd import parse


def depth(element: etree._Element) -> int:
    return 1 + max((depth(child) for child in element), default=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("most", [5, 8, 12])
def test_documents_have_the_shape_that_was_asked_for(kind: str, most: int) -> None:
    declared = dtd(kind)
    for text in documents(4, kind=kind, size=6000, depth=most, seed=3):
        root = etree.fromstring(text)
        assert root.tag == declared.root
        assert 6000 <= len(text) < 20_000
        assert depth(root) <= max(most, 7), "as deep as required elements go, if that is more"
        for element in root.iter():
            allowed = declared.elements[element.tag]
            assert {child.tag for child in element} <= set(allowed.children)
            assert set(element.attrib) <= {attribute.name for attribute in allowed.attributes}


@pytest.mark.parametrize("kind", KINDS)
def test_paths_are_distinct_and_some_are_true(kind: str) -> None:
    written = list(paths(300, kind=kind, predicates=1.2, values=10))
    assert len(set(written)) == 300
    compiled = [etree.XPath(f"boolean({path})") for path in written]
    trees = [etree.ElementTree(etree.fromstring(text)) for text in documents(3, kind=kind, values=10)]
    true = sum(path(tree) for path in compiled for tree in trees)
    assert 0 < true < 3 * len(written)


@pytest.mark.thorough
def test_parameters_do_what_they_say() -> None:
    assert not any("*" in path or "//" in path for path in paths(200, wildcard=0, descendant=0))
    assert not any("[" in path for path in paths(50, predicates=0, wildcard=0.3, descendant=0.3))
    assert list(paths(20, seed=5)) == list(paths(20, seed=5)) != list(paths(20, seed=6))
    with pytest.raises(ValueError, match="hardly more"):
        list(paths(10_000, predicates=0, wildcard=0, descendant=0, depth=3))


def test_a_dtd_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="not declared"):
        parse("<!ELEMENT a (b)>")
