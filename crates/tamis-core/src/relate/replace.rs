//! Predicate replacement (Bittner 2008, section 6.2): replaces predicates with others that cover them.
//!
//! The tree keeps its shape and becomes more general, under OR as well as under AND. This pays off if many expressions have
//! slightly different predicates (`price < 15`, `price < 14`): if one replaces them, the others leave the index.

use super::covers::covers_by_structure;
use super::tree::{Leaf, Leaves, Tree};
use crate::error::Error;
use crate::expr::Expr;

/// The expression with each of these predicates replaced by its partner, which must cover it: every
/// event that makes `expr` true makes the result true. Weights are dropped.
///
/// ```
/// use tamis_core::expr::parse;
/// use tamis_core::relate::replace_predicates;
///
/// let wider = [(parse("price < 15")?, parse("price < 20")?)];
/// let replaced = replace_predicates(&parse("NOT (price >= 15) OR signed")?, &wider)?;
/// assert_eq!(replaced.to_string(), "price < 20 OR signed");
/// assert!(replace_predicates(&parse("signed")?, &[(parse("price < 15")?, parse("price < 9")?)]).is_err());
/// # Ok::<_, tamis_core::Error>(())
/// ```
pub fn replace_predicates(expr: &Expr, replacements: &[(Expr, Expr)]) -> Result<Expr, Error> {
    let mut leaves = Leaves::default();
    let mut pairs = vec![];
    for (predicate, wider) in replacements {
        let (from, to) = (leaves.tree(predicate), leaves.tree(wider));
        let is_predicate =
            |tree: &Tree| matches!(tree, Tree::Leaf(id) if matches!(leaves.leaf(*id), Leaf::Literal(_)));
        let (Tree::Leaf(from), true, true) = (&from, is_predicate(&from), is_predicate(&to)) else {
            return Err(Error::Argument(format!("{predicate} and {wider} must be one predicate each")));
        };
        if !covers_by_structure(wider, predicate) {
            return Err(Error::Argument(format!(
                "{wider} does not cover {predicate}: what replaces a predicate must be true whenever it is"
            )));
        }
        pairs.push((*from, to));
    }
    let tree = leaves.tree(expr);
    Ok(leaves.written(&replaced(tree, &pairs)))
}

fn replaced(tree: Tree, pairs: &[(super::tree::LeafId, Tree)]) -> Tree {
    let all = |children: Vec<Tree>| children.into_iter().map(|child| replaced(child, pairs)).collect();
    match tree {
        Tree::And(children) => Tree::And(all(children)),
        Tree::Or(children) => Tree::Or(all(children)),
        Tree::Leaf(id) => match pairs.iter().find(|(from, _)| *from == id) {
            Some((_, to)) => to.clone(),
            None => tree,
        },
        constant => constant,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::parse;

    #[test]
    fn only_what_covers_may_replace() {
        let replace = |expr: &str, from: &str, to: &str| {
            let pair = (parse(from).unwrap(), parse(to).unwrap());
            replace_predicates(&parse(expr).unwrap(), &[pair]).map(|expr| expr.to_string())
        };
        let s1 = "title = 'Emma' AND (new AND price < 15 OR price < 12 AND NOT new)";
        assert_eq!(
            replace(s1, "price < 12", "price < 15").unwrap(),
            "title = 'Emma' AND (new AND price < 15 OR price < 15 AND NOT new)"
        );
        assert_eq!(replace("NOT (x IN (1, 2))", "x NOT IN (1, 2)", "x != 1").unwrap(), "x != 1");
        assert!(replace(s1, "price < 15", "price < 12").unwrap_err().to_string().contains("does not cover"));
        assert!(
            replace(s1, "price < 15 AND new", "new").unwrap_err().to_string().contains("one predicate each")
        );
    }
}
