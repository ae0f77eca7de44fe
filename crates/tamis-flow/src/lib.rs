//! Rules with memory: continuous queries over streams of events, compiled into one shared plan.
//!
//! Everything is a match. An event goes through one index of all expressions about single events
//! ([`selection`]), which says which filters it passes. Those feed windows ([`window`]), each kept once
//! however many queries use it. The values of the windows at the event's keys become attributes of the event,
//! for one index of the remaining parts of the rules ([`rule`]). Steps of sequences ([`sequence`]) are
//! selections too, and rows that join ([`join`]) are again an event, for an index of the conditions on both
//! sides. So the cost of an event depends on what it affects, not on the number of rules.
//!
//! The crate uses the kernel's facade (index, event, query, terms); the kernel does not know it.
//! `docs/flows.md` defines the meaning of queries.

mod by_key;
mod codec;
mod flow;
mod guard;
mod join;
mod journal;
mod keep;
mod key;
mod names;
mod rule;
mod selection;
mod sequence;
mod slots;
mod stream;
mod text;
mod window;

pub use flow::{Flow, Kind, Limit, OnLimit, Output};
pub use stream::{StreamOptions, TimeUnit};
pub use text::parse_interval;
