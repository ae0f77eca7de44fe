use super::Expr; use crate::event::AttrId; use crate::error::Error; use std::sync::Arc;
pub fn encode(_: &Expr, _: &mut Vec<u8>, _: &mut dyn FnMut(&str) -> AttrId) { todo!() }
pub fn decode(_: &[u8], _: &dyn Fn(AttrId) -> Option<Arc<str>>) -> Result<Expr, Error> { todo!() }
