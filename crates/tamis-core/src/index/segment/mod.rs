//! A segment: an immutable set of subscriptions, laid out to be matched.

pub mod access;
pub mod builder;
pub mod dag;
pub mod layout;
pub mod matcher;
pub mod program;
pub mod selectivity;
