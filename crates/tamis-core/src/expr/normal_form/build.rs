//! Builds the normal form from the syntax tree: pushes NOT down, flattens connectives, collects XOR.

use hashbrown::HashTable;
use rustc_hash::FxHashMap;

use super::NormalForm;
use super::form::{Form, ParityChildren};
use super::simplify::{Connective, connect};
use crate::expr::ast::{Expr, Predicate};
use crate::expr::atoms::{AtomTable, Literal};
use crate::expr::operators::truth_tested::Inner;
use crate::expr::operators::{Operator, Shape};
use crate::term::{Term, Terms};
use crate::value::Value;

pub(super) fn build(expr: &Expr, terms: &mut Terms, atoms: &mut AtomTable) -> NormalForm {
    let mut builder = Builder {
        terms,
        atoms,
        point_only: false,
        inside_parity: false,
        other_polarity: FxHashMap::default(),
        kept: HashTable::new(),
    };
    let root = builder.form(expr, true);
    NormalForm { root, point_only: builder.point_only }
}

struct Builder<'a> {
    terms: &'a mut Terms,
    atoms: &'a mut AtomTable,
    point_only: bool,
    /// Whether both polarities of every node below will be asked for.
    inside_parity: bool,
    /// XOR nodes inside a parity, by address: one polarity was handed out, this is the other.
    /// Building both at once is what keeps nested XORs from doubling at every level.
    other_polarity: FxHashMap<*const Expr, Form>,
    /// The lists of all kept parities. Equal lists are one list, so that comparing nested parities
    /// is comparing addresses.
    kept: HashTable<ParityChildren>,
}

impl Builder<'_> {
    /// The form that is true when `expr` is true (`polarity`) or when it is false (`!polarity`).
    fn form(&mut self, expr: &Expr, polarity: bool) -> Form {
        match expr {
            Expr::Constant(outcome) => {
                constant(if polarity { outcome.can_be_true } else { outcome.can_be_false })
            }
            Expr::Predicate(predicate) => self.literal(predicate, polarity),
            Expr::Not(child) => self.form(child, !polarity),
            Expr::And(children) if polarity => self.connective(Connective::And, children, polarity),
            Expr::And(children) => self.connective(Connective::Or, children, polarity),
            Expr::Or(children) if polarity => self.connective(Connective::Or, children, polarity),
            Expr::Or(children) => self.connective(Connective::And, children, polarity),
            Expr::AtLeast(least, children) => {
                let least = if polarity { *least } else { children.len() - least + 1 };
                let forms = children.iter().map(|child| self.form(child, polarity)).collect();
                self.at_least(least, forms)
            }
            Expr::Xor(_) | Expr::Xnor(_) if self.inside_parity => {
                if let Some(form) = self.other_polarity.remove(&std::ptr::from_ref(expr)) {
                    return form;
                }
                let (if_true, if_false) = self.parity(expr).both(self);
                let (asked, other) = if polarity { (if_true, if_false) } else { (if_false, if_true) };
                self.other_polarity.insert(expr, other);
                asked
            }
            Expr::Xor(_) | Expr::Xnor(_) => self.parity(expr).one(polarity, self),
        }
    }

    fn literal(&mut self, predicate: &Predicate, polarity: bool) -> Form {
        let is_not_true = predicate.operator == Operator::IS_TRUE && predicate.negated == polarity;
        if is_not_true && let Some(inner) = predicate.operator.tested(&predicate.operands) {
            // "Not true" is false or unknown, and for both there is an index.
            let mut of_inner = |operator, negated, operands: &[Value]| {
                self.literal_of(&predicate.term, operator, negated, operands)
            };
            let is_false = of_inner(inner.operator, !inner.negated, inner.operands);
            let known = known(inner);
            let is_unknown = of_inner(Operator::KNOWN, true, &known);
            return self.connect(Connective::Or, vec![is_false, is_unknown]);
        }
        literal(predicate, polarity, self.terms, self.atoms).map_or(Form::False, Form::Literal)
    }

    fn literal_of(&mut self, term: &Term, operator: Operator, negated: bool, operands: &[Value]) -> Form {
        literal_of(term, operator, negated, operands, self.terms, self.atoms)
            .map_or(Form::False, Form::Literal)
    }

    fn connective(&mut self, connective: Connective, children: &[Expr], polarity: bool) -> Form {
        let mut forms = Vec::with_capacity(children.len());
        self.gather(connective, children, polarity, &mut forms);
        self.connect(connective, forms)
    }

    /// The forms of the children, those of nested nodes of the same connective in their place.
    fn gather(&mut self, connective: Connective, children: &[Expr], polarity: bool, forms: &mut Vec<Form>) {
        for child in children {
            match (child, connective) {
                (Expr::Not(inner), _) => {
                    self.gather(connective, std::slice::from_ref(&**inner), !polarity, forms)
                }
                (Expr::And(nested), Connective::And) if polarity => {
                    self.gather(connective, nested, polarity, forms)
                }
                (Expr::And(nested), Connective::Or) if !polarity => {
                    self.gather(connective, nested, polarity, forms)
                }
                (Expr::Or(nested), Connective::Or) if polarity => {
                    self.gather(connective, nested, polarity, forms)
                }
                (Expr::Or(nested), Connective::And) if !polarity => {
                    self.gather(connective, nested, polarity, forms)
                }
                _ => forms.push(self.form(child, polarity)),
            }
        }
    }

    fn connect(&mut self, connective: Connective, forms: Vec<Form>) -> Form {
        connect(connective, forms, self.atoms, &mut self.point_only)
    }

    /// Constants are folded; one of many is OR, and all of them AND. Duplicates count.
    fn at_least(&mut self, mut least: usize, mut forms: Vec<Form>) -> Form {
        let before = forms.len();
        forms.retain(|form| *form != Form::True);
        least = least.saturating_sub(before - forms.len());
        forms.retain(|form| *form != Form::False);
        match least {
            0 => Form::True,
            least if least > forms.len() => Form::False,
            1 => self.connect(Connective::Or, forms),
            least if least == forms.len() => self.connect(Connective::And, forms),
            least => {
                forms.sort_unstable();
                Form::AtLeast(least as u32, forms)
            }
        }
    }

    /// One parity for a whole nest of XOR, XNOR and NOT.
    fn parity(&mut self, expr: &Expr) -> Parity {
        let mut gathered = Parity::default();
        let was_inside = std::mem::replace(&mut self.inside_parity, true);
        self.gather_parity(expr, &mut gathered);
        self.inside_parity = was_inside;
        gathered.simplify(self)
    }

    fn gather_parity(&mut self, expr: &Expr, gathered: &mut Parity) {
        match expr {
            Expr::Not(child) => {
                gathered.flip = !gathered.flip;
                self.gather_parity(child, gathered);
            }
            Expr::Xor(children) => {
                for child in children {
                    self.gather_parity(child, gathered);
                }
            }
            Expr::Xnor(children) => {
                gathered.flip ^= children.len() % 2 == 0;
                for child in children {
                    self.gather_parity(child, gathered);
                }
            }
            _ => {
                let pair = (self.form(expr, true), self.form(expr, false));
                gathered.push(pair);
            }
        }
    }

    /// The one list for these children.
    fn keep(&mut self, children: Vec<(Form, Form)>) -> ParityChildren {
        let children = ParityChildren::new(children);
        self.kept
            .entry(children.content_hash(), |kept| *kept == children, ParityChildren::content_hash)
            .or_insert_with(|| children.clone())
            .get()
            .clone()
    }
}

/// The literal that is true when a predicate is true (`polarity`) or when it is false; `None` if it never is.
pub(super) fn literal(
    predicate: &Predicate,
    polarity: bool,
    terms: &mut Terms,
    atoms: &mut AtomTable,
) -> Option<Literal> {
    let Predicate { term, operator, operands, .. } = predicate;
    let negated = predicate.negated == polarity;
    match operator.tested(operands) {
        Some(inner) if *operator == Operator::KNOWN => {
            literal_of(term, *operator, negated, &known(inner), terms, atoms)
        }
        // What is true is known.
        Some(inner) if !negated => {
            literal_of(term, inner.operator, inner.negated, inner.operands, terms, atoms)
        }
        _ => literal_of(term, *operator, negated, operands, terms, atoms),
    }
}

/// The operands of the one test for all predicates that are defined for the same values.
fn known(inner: Inner<'_>) -> Vec<Value> {
    let (operator, operands) = inner.alike();
    Inner { operator, negated: false, operands: &operands }.written()
}

/// Calls `visit` with every predicate as it is written, and with the operators of the literals that the normal form most
/// likely has for it: one, or inside a parity two.
pub(super) fn for_each_literal(expr: &Expr, visit: &mut impl FnMut(&Predicate, [Option<Operator>; 2])) {
    visit_literals(expr, Some(true), visit);
}

/// A polarity of `None` is both.
fn visit_literals(
    expr: &Expr,
    polarity: Option<bool>,
    visit: &mut impl FnMut(&Predicate, [Option<Operator>; 2]),
) {
    match expr {
        Expr::Constant(_) => {}
        Expr::Predicate(predicate) => {
            let operator = |polarity: bool| stored_as(predicate.operator, predicate.negated == polarity).0;
            visit(
                predicate,
                match polarity {
                    Some(polarity) => [Some(operator(polarity)), None],
                    None => [Some(operator(true)), Some(operator(false))],
                },
            );
        }
        Expr::Not(child) => visit_literals(child, polarity.map(|polarity| !polarity), visit),
        Expr::And(children) | Expr::Or(children) | Expr::AtLeast(_, children) => {
            children.iter().for_each(|child| visit_literals(child, polarity, visit));
        }
        Expr::Xor(children) | Expr::Xnor(children) => {
            children.iter().for_each(|child| visit_literals(child, None, visit));
        }
    }
}

/// The operator and the sign of the literal of a predicate: `NOT x < 5` is `x >= 5`.
fn stored_as(operator: Operator, negated: bool) -> (Operator, bool) {
    match if negated { operator.rules().complement() } else { None } {
        Some(complement) => (complement, false),
        None => (operator, negated),
    }
}

fn literal_of(
    term: &Term,
    operator: Operator,
    negated: bool,
    operands: &[Value],
    terms: &mut Terms,
    atoms: &mut AtomTable,
) -> Option<Literal> {
    let (operator, negated) = stored_as(operator, negated);
    // Only a null, an empty set or ends in reverse order make an operator that is never true; asking
    // every pattern for its shape would cost more than it finds.
    let suspect = operands.len() != 1 || operands[0] == Value::Null;
    let plain = operator.rules().without_weights(operands);
    let operands = plain.as_deref().unwrap_or(operands);
    // Also what is left out is looked at where the expression is read as it was written.
    let term = terms.intern_term(term);
    if suspect && !negated && matches!(operator.rules().shape(operands), Shape::Never) {
        return None;
    }
    Some(Literal::new(atoms.intern(term, operator, operands), negated))
}

fn constant(truth: bool) -> Form {
    if truth { Form::True } else { Form::False }
}

/// An XOR in the making: true when all guards are and an odd number of children (even, if flipped).
#[derive(Default)]
struct Parity {
    flip: bool,
    guards: Vec<Form>,
    children: Vec<(Form, Form)>,
}

impl Parity {
    fn push(&mut self, child: (Form, Form)) {
        match child {
            // What turned out to be a parity itself, `TRUE AND (a XOR b XOR c)`, joins this one.
            (Form::Parity { odd, children: nested }, Form::Parity { odd: not_odd, children: same })
                if odd != not_odd && nested.address() == same.address() =>
            {
                self.flip ^= !odd;
                self.children.extend(nested.iter().cloned());
            }
            // Never true: the others decide, as long as it is false and not undefined.
            (Form::False, if_false) if is_small(&if_false) => self.guards.push(if_false),
            (if_true, Form::False) if is_small(&if_true) => {
                self.flip = !self.flip;
                self.guards.push(if_true);
            }
            // One orientation for `a` and `NOT a`.
            (if_true, if_false) if if_true > if_false => {
                self.flip = !self.flip;
                self.children.push((if_false, if_true));
            }
            child => self.children.push(child),
        }
    }

    /// Sorts the children; equal ones cancel, which leaves "and it is not undefined".
    fn simplify(mut self, builder: &mut Builder<'_>) -> Self {
        self.children.sort_unstable();
        let mut children: Vec<(Form, Form)> = Vec::with_capacity(self.children.len());
        let mut cancelled = Vec::new();
        for child in std::mem::take(&mut self.children) {
            if children.last() == Some(&child) {
                children.pop();
                cancelled.push(child);
            } else {
                children.push(child);
            }
        }
        self.children = children;
        if !cancelled.is_empty() {
            // An interval can be true once and false once.
            builder.point_only = true;
            for (if_true, if_false) in cancelled {
                let defined = builder.connect(Connective::Or, vec![if_true, if_false]);
                self.push((Form::False, defined));
            }
            self.children.sort_unstable();
        }
        self
    }

    /// The forms for true and for false.
    fn both(mut self, builder: &mut Builder<'_>) -> (Form, Form) {
        let (odd, even) = match self.children.len() {
            0 => (Form::False, Form::True),
            1 => self.children.pop().expect("there is one"),
            _ => {
                let children = builder.keep(self.children);
                (
                    Form::Parity { odd: true, children: children.clone() },
                    Form::Parity { odd: false, children },
                )
            }
        };
        let (if_true, if_false) = if self.flip { (even, odd) } else { (odd, even) };
        let mut guarded = |form: Form| {
            let mut forms = self.guards.clone();
            forms.push(form);
            builder.connect(Connective::And, forms)
        };
        (guarded(if_true), guarded(if_false))
    }

    /// The form for true or the one for false, when the other will not be asked for.
    fn one(mut self, polarity: bool, builder: &mut Builder<'_>) -> Form {
        if self.children.len() != 2 {
            let (if_true, if_false) = self.both(builder);
            return if polarity { if_true } else { if_false };
        }
        let (b_true, b_false) = self.children.pop().expect("there are two");
        let (a_true, a_false) = self.children.pop().expect("there are two");
        let differ = polarity != self.flip;
        let pairs = if differ {
            [vec![a_true, b_false], vec![a_false, b_true]]
        } else {
            [vec![a_true, b_true], vec![a_false, b_false]]
        };
        let cases = pairs.into_iter().map(|pair| builder.connect(Connective::And, pair)).collect();
        let expanded = builder.connect(Connective::Or, cases);
        self.guards.push(expanded);
        builder.connect(Connective::And, self.guards)
    }
}

/// Whether a form may be written twice, once in each polarity, without nested ones growing fast.
fn is_small(form: &Form) -> bool {
    match form {
        Form::True | Form::False | Form::Literal(_) => true,
        Form::Or(children) => matches!(children[..], [Form::Literal(_), Form::Literal(_)]),
        Form::And(_) | Form::AtLeast(..) | Form::Parity { .. } => false,
    }
}
