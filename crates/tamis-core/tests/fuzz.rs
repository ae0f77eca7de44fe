//! Every reader of untrusted bytes, fed with damaged inputs: a fixed number of them, or as many as fit into
//! `FUZZ_SECONDS` for each reader. The inputs are the same in every run. `fuzz/` holds the coverage-guided
//! counterpart and the promises that are checked.

#[path = "../../../fuzz/src/lib.rs"]
mod promises;

use std::time::{Duration, Instant};

use promises::Target;

/// Pieces of text that mean something to some reader.
const WORDS: &[&str] = &[
    "AND",
    "OR",
    "NOT",
    "XOR",
    "IN",
    "BETWEEN",
    "IS",
    "NULL",
    "LIKE",
    "ESCAPE",
    "TRUE",
    "ARRAY(",
    "(",
    ")",
    ",",
    "'",
    "\"",
    "`",
    "\\",
    "\\u",
    "^",
    ".",
    "-",
    "--",
    "/*",
    "*/",
    "1e999",
    "9223372036854775808",
    "é",
    "\u{1F600}",
    "{",
    "}",
    "[",
    "]",
    ":",
    "$interval",
    "$event",
    "null",
    "\0",
    "=",
];

/// xorshift64*: the same sequence everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 33) as usize % limit.max(1)
    }

    fn choose<'t, T>(&mut self, among: &'t [T]) -> &'t T {
        &among[self.below(among.len())]
    }
}

/// One input: a seed with a few changes.
fn damaged(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = random.choose(seeds).clone();
    for _ in 0..=random.below(4) {
        let at = random.below(input.len() + 1);
        let end = (at + random.below(9)).min(input.len());
        match random.below(7) {
            0 => drop(input.drain(at..end)),
            1 => drop(input.splice(at..at, random.choose(WORDS).bytes())),
            2 => drop(input.splice(at..end, random.choose(WORDS).bytes())),
            3 => input.truncate(at),
            4 => {
                let other = random.choose(seeds);
                let from = random.below(other.len());
                let to = (from + random.below(40)).min(other.len());
                drop(input.splice(at..end, other[from..to].iter().copied()));
            }
            5 => drop(input.splice(at..at, random.next().to_le_bytes())),
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
    }
    input
}

/// Prints the input that broke a promise.
struct Culprit<'i>(&'i str, &'i [u8]);

impl Drop for Culprit<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{} broke its promise on {:?}", self.0, self.1.escape_ascii().to_string());
        }
    }
}

fn attack(name: &str, most: u64) {
    let Target { check, seeds, .. } = promises::target(name);
    let seeds = seeds();
    let budget = std::env::var("FUZZ_SECONDS")
        .ok()
        .map(|seconds| Duration::from_secs(seconds.parse().expect("FUZZ_SECONDS is a number of seconds")));
    let start = Instant::now();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut cases = 0;
    for seed in &seeds {
        check(seed);
    }
    while budget.map_or(cases < most, |budget| start.elapsed() < budget) {
        let input = damaged(&seeds, &mut random);
        let culprit = Culprit(name, &input);
        check(&input);
        drop(culprit);
        cases += 1;
    }
    println!("{name}: {cases} damaged inputs in {:.1} s", start.elapsed().as_secs_f64());
}

#[test]
fn parse() {
    attack("parse", 20_000);
}

#[test]
fn expression_json() {
    attack("expression_json", 20_000);
}

#[test]
fn event_json() {
    attack("event_json", 20_000);
}

#[test]
fn codec() {
    attack("codec", 20_000);
}

#[test]
fn snapshot() {
    attack("snapshot", 20_000);
}

#[test]
fn index() {
    attack("index", 2_000);
}
