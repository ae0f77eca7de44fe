//! Modules depend on one another in one direction: the graph of what they `use` has no cycle.
//!
//! The graph is read from the sources, without tests. Two graphs are checked: the modules of the crate, and those of
//! the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

type Graph = BTreeMap<String, BTreeSet<String>>;

/// All sources below a folder, as paths relative to it.
fn sources(folder: &Path, below: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder.join(below)).expect("the sources are there").flatten() {
        let path = below.join(entry.file_name());
        if entry.path().is_dir() {
            sources(folder, &path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The modules of one folder, each with those of the same folder that it names. `prefix` is what leads to them
/// from the root of the crate.
fn graph(folder: &str, prefix: &str) -> Graph {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder);
    let mut files = vec![];
    sources(&root, Path::new(""), &mut files);
    let module = |path: &Path| {
        let first = path.components().next().expect("a name").as_os_str().to_string_lossy();
        first.trim_end_matches(".rs").to_owned()
    };
    let modules: BTreeSet<String> = files.iter().map(|path| module(path)).collect();
    let mut graph = Graph::new();
    for path in &files {
        let is_test = |name: &str| ["tests", "tests.rs", "testing.rs", "module_graph.rs"].contains(&name);
        if path.iter().any(|part| is_test(&part.to_string_lossy()))
            || path.iter().count() == 1 && is_root(path)
        {
            continue;
        }
        let text = std::fs::read_to_string(root.join(path)).expect("it can be read");
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or(&text);
        let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let uses = graph.entry(module(path)).or_default();
        let depth = path.iter().count() - usize::from(path.ends_with("mod.rs"));
        for prefix in [prefix.to_owned(), "super::".repeat(depth)] {
            for (at, _) in code.match_indices(&prefix) {
                if code[..at].ends_with(|before: char| before.is_alphanumeric() || before == ':') {
                    continue;
                }
                uses.extend(
                    named(&code[at + prefix.len()..]).into_iter().filter(|name| modules.contains(name)),
                );
            }
        }
        uses.remove(&module(path));
    }
    graph
}

fn is_root(path: &Path) -> bool {
    path.ends_with("lib.rs") || path.ends_with("mod.rs")
}

/// The first names of a path or of a group of paths.
fn named(path: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
    };
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
    let (mut depth, mut start, mut names) = (0, 0, vec![]);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.push(name(&group[start..at]));
                return names;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(name(&group[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    names
}

/// What is left when modules that use nothing of the rest are taken away again and again.
fn cycles(mut graph: Graph) -> Graph {
    loop {
        let done: Vec<String> = graph
            .iter()
            .filter(|(_, uses)| !uses.iter().any(|used| graph.contains_key(used)))
            .map(|(module, _)| module.clone())
            .collect();
        if done.is_empty() {
            return graph;
        }
        done.iter().for_each(|module| drop(graph.remove(module)));
    }
}

#[test]
fn the_modules_of_the_crate_have_no_cycle() {
    let graph = graph("", "crate::");
    assert!(graph["engine"].contains("event") && graph["predicate"].contains("expr"), "{graph:?}");
    assert_eq!(cycles(graph), Graph::new());
}

#[test]
fn the_modules_of_the_engine_have_no_cycle() {
    let graph = graph("engine", "crate::engine::");
    assert!(graph["production"].contains("segment") && graph["index"].contains("production"), "{graph:?}");
    assert_eq!(cycles(graph), Graph::new());
}

#[test]
fn a_cycle_is_found() {
    let edge = |from: &str, to: &[&str]| (from.to_owned(), to.iter().map(|name| name.to_string()).collect());
    let graph = Graph::from([
        edge("a", &["b"]),
        edge("b", &["c"]),
        edge("c", &["b"]),
        edge("d", &["a", "e"]),
        edge("e", &[]),
    ]);
    assert_eq!(cycles(graph).keys().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    assert_eq!(named("{a::B, c::{D, E}, f}; use x"), ["a", "c", "f"]);
}
