//! The structures that find matches without looking at every subscription.

pub mod algorithm;
pub mod classic;
pub mod production;
pub mod reader;
pub mod scan;
pub mod segment;
pub mod subscription;
