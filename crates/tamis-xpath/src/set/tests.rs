use proptest::prelude::*;

use super::*;
use crate::reader::Limits;
use crate::{Selector, testing};

fn found(set: &PathSet, document: &Document) -> Vec<u32> {
    let mut found = vec![];
    set.matches(document, &mut |path| found.push(path));
    found.sort_unstable();
    found
}

fn expected(paths: &[Path], document: &Document) -> Vec<u32> {
    (0..).zip(paths).filter(|(_, path)| Selector::new(path).is_true(document)).map(|(at, _)| at).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_set_finds_what_each_path_says(
        texts in prop::collection::vec(testing::path(), 1..40),
        documents in prop::collection::vec(testing::document(), 1..4),
    ) {
        let paths: Vec<Path> = texts.iter().map(|text| Path::parse(text).unwrap()).collect();
        let set = PathSet::new(&paths);
        for text in &documents {
            let document = Document::read(text, &Limits::default()).unwrap();
            prop_assert_eq!(found(&set, &document), expected(&paths, &document), "{}", text);
            // With states that are forgotten again and again.
            let mut again = vec![];
            set.match_within(3000, &document, &mut Scratch::default(), &mut |path| again.push(path));
            again.sort_unstable();
            prop_assert_eq!(again, expected(&paths, &document), "{}", text);
        }
    }

    #[test]
    fn what_is_stored_of_a_set_is_true_for_the_same_documents(
        texts in prop::collection::vec(testing::path(), 1..20),
        text in testing::document(),
    ) {
        let paths: Vec<Path> = texts.iter().map(|text| Path::parse(text).unwrap()).collect();
        let document = Document::read(&text, &Limits::default()).unwrap();
        let mut stored = vec![];
        PathSet::new(&paths).for_each_text(&mut |text| stored.push(Path::parse(text).unwrap()));
        prop_assert_eq!(found(&PathSet::new(&stored), &document), expected(&paths, &document));
    }

    #[test]
    fn any_text_is_a_path_or_is_refused(
        text in r#"[/ab*@\[\]()='"x1.,<>!|{}Q:ordnt -]{0,30}"#,
        path in testing::path(),
        at in any::<prop::sample::Index>(),
    ) {
        for text in [text.clone(), testing::with_inserted(&path, at, &text)] {
            match Path::parse(&text) {
                Ok(path) => prop_assert_eq!(&Path::parse(&path.to_string()).unwrap(), &path),
                Err(error) => prop_assert!(error.offset <= text.len()),
            }
        }
    }

    #[test]
    fn any_text_is_a_document_or_is_refused(
        document in testing::document(),
        inserted in r#"[<>&;'"=/!?ab:# \]\[-]{0,6}"#,
        at in any::<prop::sample::Index>(),
        paths in prop::collection::vec(testing::path(), 1..4),
    ) {
        let text = testing::with_inserted(&document, at, &inserted);
        if let Ok(document) = Document::read(&text, &Limits::default()) {
            let paths: Vec<Path> = paths.iter().map(|text| Path::parse(text).unwrap()).collect();
            let expected = expected(&paths, &document);
            prop_assert_eq!(&found(&PathSet::new(&paths), &document), &expected, "{}", text);
            for (number, path) in (0..).zip(&paths) {
                let is_true = crate::Explanation::new(path, &document).missed.is_none();
                prop_assert_eq!(is_true, expected.contains(&number), "{} {}", path, text);
            }
        }
    }

    #[test]
    fn paths_print_and_read_back(text in testing::scored_path()) {
        let path = Path::parse(&text).unwrap();
        prop_assert_eq!(&Path::parse(&path.to_string()).unwrap(), &path);
    }

    #[test]
    fn weights_change_scores_only(text in testing::scored_path(), document in testing::document()) {
        let path = Path::parse(&text).unwrap();
        let plain = path.without_weights();
        prop_assert!(!plain.is_scored());
        let document = Document::read(&document, &Limits::default()).unwrap();
        let is_true = Selector::new(&plain).is_true(&document);
        prop_assert_eq!(Selector::new(&path).is_true(&document), is_true);
        let score = Selector::new(&path).score(&document);
        prop_assert_eq!(score.is_some(), is_true);
        prop_assert!(score.is_none_or(|score| (0.0..=path.most_score()).contains(&score)));
        prop_assert_eq!(crate::Explanation::new(&path, &document).score, score.filter(|_| path.is_scored()));
        prop_assert_eq!(found(&PathSet::new(&[path]), &document).len(), usize::from(is_true));
    }
}

#[test]
fn numbers_that_round_oddly_are_stored_as_they_were_written() {
    let texts = [
        "/a[b = 0.1]",
        "/a[b = 123456789.123456789123456789]",
        "/a[not(b > 'x')]",
        "/a[b < '1e300']",
        "/a[b = -0]",
    ];
    let paths: Vec<Path> = texts.iter().map(|text| Path::parse(text).unwrap()).collect();
    let mut stored = vec![];
    PathSet::new(&paths).for_each_text(&mut |text| stored.push(Path::parse(text).unwrap()));
    for value in ["0.1", "123456789.123456789123456789", "0", "5"] {
        let document = Document::read(&format!("<a><b>{value}</b></a>"), &Limits::default()).unwrap();
        assert_eq!(found(&PathSet::new(&stored), &document), expected(&paths, &document), "{value}");
    }
}
