use super::*;

fn printed(text: &str) -> String {
    let path = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let printed = path.to_string();
    assert_eq!(parse(&printed).unwrap(), path, "{printed}");
    printed
}

#[test]
fn paths_print_as_they_were_written() {
    for text in [
        "/a",
        "//a",
        "/a/b//c/*",
        "//*//@id",
        "/a/text()",
        "/a//text()",
        "/a/@*",
        "/a[b]",
        "/a[.//b/@c]",
        "/a[. = 'x']",
        "/a[b = 5][@c != \"it's\"]",
        "/a[b < -5.25 or c >= .5 and not(d)]",
        "/a[(b or c) and d]",
        "/a[contains(., 'x') and starts-with(b/c, 'y')]/d",
        "/a[b[c[d = 'x']]]",
        "/Q{urn:x}a/Q{urn:x}*/@xml:lang",
        "/a[@id[. = 'x' and not(. = 'y')]]",
        "/or[and]/div[mod or or]",
        "/a^2/b^0.5[c]^3[d]//@e^1",
        "/a[(b > 5)^2 or (c)^0 or (not(d))^1.5]",
        "/a[b^2/c^3 = 'x' and contains(d^4, 'y')]",
        "/a[contains(b, 'y')]^2",
    ] {
        assert_eq!(printed(text), text);
    }
}

#[test]
fn other_spellings_have_one_form() {
    for (text, form) in [
        ("  / a // b [ c ] ", "/a//b[c]"),
        ("/child::a/descendant::b/attribute::c", "/a//b/@c"),
        ("/a[5 < b]", "/a[b > 5]"),
        ("/a[./b and .//c]", "/a[b and .//c]"),
        ("/a[(b)]", "/a[b]"),
        ("/a[b>-  5]", "/a[b > -5]"),
        ("/a ^ 2.50 [ (b = 1) ^ 03 ]", "/a^2.5[b = 1]^3"),
        ("/a[not(b)^2 and contains(c, 'x') ^ .5]", "/a[(not(b))^2 and (contains(c, 'x'))^0.5]"),
        (
            "declare namespace n='urn:n'; declare namespace m = \"urn:m\";//n:a/m:*[@n:b]",
            "//Q{urn:n}a/Q{urn:m}*[@Q{urn:n}b]",
        ),
    ] {
        assert_eq!(printed(text), form);
    }
}

#[test]
fn what_is_not_supported_is_refused_with_its_place() {
    for (text, place, part) in [
        ("", 0, "begins with"),
        ("news/item", 0, "begins with"),
        ("/", 1, "name is expected"),
        ("/a/", 3, "name is expected"),
        ("/a[1]", 3, "positions"),
        ("/a[position() = 1]", 3, "position()"),
        ("/a[last()]", 3, "last()"),
        ("/a/..", 3, "parent"),
        ("/a/.", 3, "step ."),
        ("/a/parent::b", 3, "axis parent"),
        ("/a/following-sibling::b", 3, "axis following-sibling"),
        ("/a/upwards::b", 3, "no axis"),
        ("/a | /b", 3, "union"),
        ("/a[b | c]", 5, "union"),
        ("/a/b > 5", 5, "compared"),
        ("/a[b = c]", 7, "two paths"),
        ("/a['x' = 'x']", 7, "two values"),
        ("/a['x']", 3, "on its own"),
        ("/a[b = 'x]", 7, "closing quote"),
        ("/a[b", 4, "\"]\""),
        ("/a[/b]", 3, "begins at the node"),
        ("/a[count(b) > 5]", 3, "count()"),
        ("/a[b + 1 > 5]", 5, "arithmetic"),
        ("/a[1 < b < 5]", 9, "follow one another"),
        ("/a[contains(b)]", 13, "\",\""),
        ("/a[contains('x', b)]", 3, "path and a text"),
        ("/a[contains(b, c)]", 15, "text in quotes"),
        ("/n:a", 1, "prefix n"),
        ("/a/node()", 3, "node()"),
        ("/a/comment()", 3, "comment()"),
        ("/a/@b/c", 5, "no children"),
        ("/a/text()/b", 9, "no children"),
        ("/a[true()]", 3, "true()"),
        ("/a b", 3, "not expected"),
        ("/a[b = 5x]", 8, "number ends"),
        ("/a[.[b]]", 4, "cannot follow ."),
        ("/a^", 2, "a weight is a number"),
        ("/a^-1", 2, "a weight is a number"),
        ("/a^'2'", 2, "a weight is a number"),
        ("/a^2^3", 4, "given twice"),
        ("/a[(b)^2]^3", 9, "given twice"),
        ("/a[b > 5^2]", 8, "not behind a value"),
        ("/a[.^2]", 4, "cannot follow ."),
        ("/a[not(b^2)]", 8, "inside not()"),
        ("/a[not((b)^2 or c)]", 10, "inside not()"),
        ("declare namespace a = ''; /a:b", 22, "not empty"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.offset, place, "{text}: {error}");
        assert!(error.message.contains(part), "{text}: {error}");
    }
}

#[test]
fn the_weights_of_a_path_have_a_finite_sum() {
    let large = "9".repeat(308);
    assert!(parse(&format!("/a^{large}/b")).is_ok());
    assert!(parse(&format!("/a^{large}9")).unwrap_err().message.contains("a weight is a number"));
    let many = format!("/a{}", format!("/b^{large}").repeat(20));
    assert!(parse(&many).unwrap_err().message.contains("add up to more"));
}

#[test]
fn size_and_nesting_are_bounded() {
    let long = format!("/a{}", "/a".repeat(MAX_STEPS));
    assert!(parse(&long).unwrap_err().message.contains("steps"));
    assert!(parse(&long[2..]).is_ok());
    let deep = format!("/a{}{}", "[a".repeat(40), "]".repeat(40));
    assert!(parse(&deep).unwrap_err().message.contains("nested deeper"));
    let deep = format!("/a[{}a{}]", "(".repeat(40_000), ")".repeat(40_000));
    assert!(parse(&deep).unwrap_err().message.contains("longer than"));
    let deep = format!("/a[{}a{}]", "not(".repeat(1000), ")".repeat(1000));
    assert!(parse(&deep).unwrap_err().message.contains("nested deeper"));
}
