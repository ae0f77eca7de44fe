use super::*;

fn read(text: &str) -> Result<Document, DocumentError> {
    Document::read(text, &Limits::default())
}

#[test]
fn elements_attributes_and_texts_lie_in_document_order() {
    let document = read("<a x='1'>one<b y='2' z='3'>two</b>three<!-- c -->four<c/></a>").unwrap();
    let names: Vec<&str> = document.elements.iter().map(|e| document.names.name(e.name).1).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let texts: Vec<&str> =
        document.texts_of(0).map(|at| document.string_value(crate::document::Node::Text(at))).collect();
    assert_eq!(texts, ["one", "three", "four"]);
    assert_eq!(document.string_value(crate::document::Node::Element(0)), "onetwothreefour");
    assert_eq!(document.attributes_of(1).count(), 2);
    assert_eq!(document.children(0).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn what_libxml2_refuses_is_refused() {
    for text in [
        "",
        " ",
        "x",
        "<a",
        "<a>",
        "</a>",
        "<a></b>",
        "<a><b></a></b>",
        "<a/><b/>",
        "<a/>x",
        "x<a/>",
        "< a/>",
        "<a / >",
        "<a></ a>",
        "<1a/>",
        "<a:/>",
        "<:a/>",
        "<a:b:c/>",
        "<p:a/>",
        "<a p:x='1'/>",
        "<a x='1' x='2'/>",
        "<a x='1'y='2'/>",
        "<a x='<'/>",
        "<a x=1/>",
        "<a x/>",
        "<a ='1'/>",
        "<a x='1/>",
        "<a>]]></a>",
        "<a>\u{1}</a>",
        "<a>\u{ffff}</a>",
        "<a>&x;</a>",
        "<a>&amp</a>",
        "<a>& </a>",
        "<a>&;</a>",
        "<a x='&x;'/>",
        "<a x='&amp'/>",
        "<a>&#0;</a>",
        "<a>&#xD800;</a>",
        "<a>&#x;</a>",
        "<a><!-- -- --></a>",
        "<a><!-- a---></a>",
        "<a><!-- </a>",
        "<a><?xml x?></a>",
        " <?xml version='1.0'?><a/>",
        "<?xml version='1.0' foo='1'?><a/>",
        "<?xml?><a/>",
        "<?xml version='1.0' standalone='maybe'?><a/>",
        "<?xml version='1.0' encoding=''?><a/>",
        "<?xml version='1.0' encoding='8bit'?><a/>",
        "<a><?1?></a>",
        "<?a:b?><a/>",
        "<a><![CDATA[</a>",
        "<![CDATA[x]]><a/>",
        "<a xmlns:p=''/>",
        "<a xmlns:xml='u'/>",
        "<a xmlns:xmlns='u'/>",
        "<a xmlns:x='u' xmlns:y='u' x:a='' y:a=''/>",
        "<a xmlns='u' xmlns='v'/>",
        "<a/><!DOCTYPE a>",
        "<!DOCTYPE a><!DOCTYPE a><a/>",
        "<!DOCTYPE a [<!ENTITY e 'x'><a/>",
        "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>",
        "<!DOCTYPE a SYSTEM 'x.dtd'><a>&e;</a>",
        "&amp;<a/>",
        "<a/>&amp;",
        "<a><b/ ></a>",
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn what_libxml2_accepts_is_accepted() {
    for text in [
        "<a/>",
        "\u{feff}<a/>",
        "<?xml version='1.0' encoding='utf-8' standalone='yes'?>\n<a/>\n",
        "<?xml version=\"1.1\"?><a/>",
        "<a x = '1' />",
        "<a\n>\n</a\n>",
        "<xml/>",
        "<a><!-- - --></a>",
        "<!DOCTYPE b><a/>",
        "<!DOCTYPE a SYSTEM 'x.dtd'><a/>",
        "<!DOCTYPE a [<!ELEMENT a (#PCDATA)><!ATTLIST a x CDATA '>'><!-- ] --> <?p ]?> ]><a/>",
        "<a xmlns:xml='http://www.w3.org/XML/1998/namespace' xml:lang='en'/>",
        "<a><?p q?></a><!-- end --><?p?>",
        "<a xmlns='u' xmlns:p='v'><p:b q='1' p:q='2'/></a>",
        "<é/>",
        "<a é='1'/>",
        "<a>&#9;&#xA;&#13;</a>",
    ] {
        if let Err(error) = read(text) {
            panic!("{text}: {error}");
        }
    }
}

#[test]
fn references_and_line_ends_are_replaced() {
    let text = "<!DOCTYPE a [<!ENTITY e 'v&amp;w'><!ENTITY f '&e;&e;'><!ENTITY g '&#38;#60;'>]>\
        <a x=\"1\t2&#9;3\r\n4&f;\">1\r\n2\r3&#13;&f;<![CDATA[&e;]]>&g;</a>";
    let document = read(text).unwrap();
    assert_eq!(document.text, "1\n2\n3\rv&wv&w&e;<");
    assert_eq!(document.values, "1 2\t3 4v&wv&w");
    assert_eq!(document.texts.len(), 1);
}

#[test]
fn faults_have_a_place() {
    let error = read("<a>\n  <b x='1'\n     y='2' x='3'/>\n</a>").err().unwrap();
    assert_eq!((error.line, error.column), (3, 12), "{error}");
    let error = read("<a>\n\u{e9}\u{e9}<b></a>").err().unwrap();
    assert_eq!((error.line, error.column), (2, 6), "{error}");
}

#[test]
fn bombs_and_depth_are_bounded() {
    let mut text = String::from("<!DOCTYPE a [<!ENTITY e0 'ha'>");
    for level in 1..15 {
        text += &format!("<!ENTITY e{level} '{}'>", format!("&e{};", level - 1).repeat(10));
    }
    text += "]><a>&e14;</a>";
    assert!(read(&text).err().unwrap().message.contains("expand to more"));
    let recursive = "<!DOCTYPE a [<!ENTITY e '&f;'><!ENTITY f '&e;'>]><a>&e;</a>";
    assert!(read(recursive).err().unwrap().message.contains("nested deeper"));
    let deep = "<a>".repeat(1_000_000);
    assert!(read(&deep).err().unwrap().message.contains("nested deeper than the limit of 256"));
    let limits = Limits { bytes: 10, ..Limits::default() };
    assert!(Document::read("<a>0123456789</a>", &limits).err().unwrap().message.contains("larger than"));
    let wide: String = (0..100_000).map(|at| format!(" a{at}='1'")).collect();
    assert_eq!(read(&format!("<a{wide}/>")).unwrap().attributes.len(), 100_000);
    assert!(read(&format!("<a{wide} a7='2'/>")).err().unwrap().message.contains("twice"));
}
