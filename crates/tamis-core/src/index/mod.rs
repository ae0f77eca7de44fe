//! The structures that find matches without looking at every subscription.

pub mod production;
pub mod segment;
pub mod subscription;
