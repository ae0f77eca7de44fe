//! The structures that find matches without looking at every subscription.

pub mod segment;
