pub fn parse(_: &str) -> Result<super::Expr, crate::error::ExpressionError> { todo!() }
