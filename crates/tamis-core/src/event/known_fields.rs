//! Which fields of events an index needs, learnt from event to event.
//!
//! Events of one stream have mostly the same fields, in mostly the same order. So each record remembers the names it had,
//! in the order of their first appearance, and whether the index needs each. A field then costs one comparison with the
//! name that followed the previous one, instead of a path that is assembled, hashed and looked up twice.

use rustc_hash::FxBuildHasher;

use super::fields::Wanted;
use super::{TermId, Terms};
use crate::stamp::Stamp;

type Names = hashbrown::HashMap<Box<str>, u32, FxBuildHasher>;

/// From this many fields on, no more are remembered that nobody wants, and everything is forgotten before the next event: names
/// may be random.
const MOST_FIELDS: usize = 4096;

/// The same for the bytes of their names and paths.
const MOST_BYTES: usize = 1 << 20;

/// The fields of all events so far, as a tree. The first is the event itself.
#[derive(Debug, Default)]
pub(super) struct KnownFields {
    /// The attributes that this was learnt from.
    stamp: Stamp,
    fields: Vec<Field>,
    /// How often everything was forgotten.
    forgotten: u64,
    /// Of all names and paths.
    bytes: usize,
    /// Stands for each field that is not remembered, one at a time. Nobody looks into these.
    passing: Option<KnownField>,
}

/// The place of a field in [`KnownFields`].
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownField(u32);

const EVENT: usize = 0;

/// A field of the event, for whoever knows it by something else than its name. It is forgotten with all others.
#[derive(Clone, Copy, Debug)]
pub struct SeenField {
    field: KnownField,
    forgotten: u64,
    attribute: Option<TermId>,
    wanted: Wanted,
}

#[derive(Debug)]
struct Field {
    /// Dotted, from the event.
    path: Box<str>,
    attribute: Option<TermId>,
    wanted: Wanted,
    /// Its own fields, in the order in which they first came.
    inner: Vec<Inner>,
    /// The places of these names.
    by_name: Names,
    /// The place of the name that is expected next.
    next: u32,
}

/// A field inside a record.
#[derive(Debug)]
struct Inner {
    name: Quoted,
    field: KnownField,
    wanted: Wanted,
}

/// A name as JSON writes it, if that needs no escapes and the name may stand anywhere.
#[derive(Debug)]
pub struct Quoted {
    text: Box<[u8]>,
    /// The first bytes of the text as a number, and the bits in which they count; all of them if there are no more.
    head: u128,
    head_bits: u128,
    is_plain: bool,
}

impl Quoted {
    fn new(name: &str) -> Self {
        const HEAD: usize = 16;
        let text = format!("\"{name}\"").into_bytes();
        let held = text.len().min(HEAD);
        let mut head = [0; HEAD];
        head[..held].copy_from_slice(&text[..held]);
        // Some names that begin with `$` may stand only in certain places, where their reader looks at them.
        let is_plain =
            !name.starts_with('$') && !name.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\'));
        let head_bits = u128::MAX >> (8 * (HEAD - held));
        Self { text: text.into(), head: u128::from_le_bytes(head), head_bits, is_plain }
    }

    fn name(&self) -> &[u8] {
        &self.text[1..self.text.len() - 1]
    }

    /// Whether a text begins with it.
    #[inline(always)]
    pub fn begins(&self, text: &[u8]) -> bool {
        let Some((first, rest)) = text.split_first_chunk() else {
            return self.is_plain && text.starts_with(&self.text);
        };
        self.is_plain
            && u128::from_le_bytes(*first) & self.head_bits == self.head
            && self.text.get(first.len()..).is_none_or(|more| rest.starts_with(more))
    }
}

impl Field {
    fn new(path: Box<str>, attribute: Option<TermId>, wanted: Wanted) -> Self {
        Self { path, attribute, wanted, inner: vec![], by_name: Names::default(), next: 0 }
    }
}

impl KnownFields {
    /// Before an event is read: forgets what was learnt from other attributes.
    pub fn prepare(&mut self, attributes: &Terms) {
        if self.stamp != attributes.stamp() || self.is_large() {
            let forgotten = self.forgotten + 1;
            *self = Self { stamp: attributes.stamp(), forgotten, ..Self::default() };
        }
        match self.fields.first_mut() {
            Some(event) => event.next = 0,
            None => {
                let wanted = Wanted { value: false, fields: true };
                self.fields.push(Field::new("".into(), None, wanted));
            }
        }
    }

    fn is_large(&self) -> bool {
        self.fields.len() > MOST_FIELDS || self.bytes > MOST_BYTES
    }

    /// What an entered field of the event may be known by, unless it stands for many.
    pub fn seen(&self, field: KnownField) -> Option<SeenField> {
        let is_passing = self.passing.is_some_and(|passing| passing.0 == field.0);
        let Field { attribute, wanted, .. } = self.fields[field.0 as usize];
        (!is_passing).then_some(SeenField { field, forgotten: self.forgotten, attribute, wanted })
    }

    /// What is wanted of a field that was seen, and its attribute, if it is still known.
    #[inline]
    pub fn wanted_of_seen(&self, seen: SeenField) -> Option<(Wanted, Option<TermId>)> {
        (seen.forgotten == self.forgotten).then_some((seen.wanted, seen.attribute))
    }

    /// The field that was seen, if it is still known.
    #[inline]
    pub fn enter_seen(&mut self, seen: SeenField) -> Option<KnownField> {
        if seen.forgotten != self.forgotten {
            return None;
        }
        self.fields[seen.field.0 as usize].next = 0;
        Some(seen.field)
    }

    /// The field `name` of a record, or of the event.
    #[inline]
    pub fn field(&mut self, record: Option<KnownField>, name: &str, attributes: &Terms) -> KnownField {
        let parent = record.map_or(EVENT, |field| field.0 as usize);
        let Field { inner, next, .. } = &mut self.fields[parent];
        if let Some(Inner { name: expected, field, .. }) = inner.get(*next as usize)
            && expected.name() == name.as_bytes()
        {
            *next += 1;
            let field = *field;
            self.fields[field.0 as usize].next = 0;
            return field;
        }
        self.unexpected_field(parent, name, attributes)
    }

    /// The field that came next the last time, if the text begins with its name in quotes. Also the length of that, and what is
    /// wanted of the field.
    #[inline]
    pub fn expected_field(
        &mut self,
        record: Option<KnownField>,
        text: &[u8],
    ) -> Option<(KnownField, usize, Wanted)> {
        let parent = record.map_or(EVENT, |field| field.0 as usize);
        let Field { inner, next, .. } = &mut self.fields[parent];
        let Inner { name, field, wanted } = inner.get(*next as usize)?;
        if !name.begins(text) {
            return None;
        }
        *next += 1;
        let (field, bytes, wanted) = (*field, name.text.len(), *wanted);
        // Nobody looks into the others.
        if wanted.fields {
            self.fields[field.0 as usize].next = 0;
        }
        Some((field, bytes, wanted))
    }

    /// Goes past the fields that came next the last time for as long as nobody wants them and `pass` goes past one of that name.
    #[inline(always)]
    pub fn pass_unwanted(&mut self, record: Option<KnownField>, mut pass: impl FnMut(&Quoted) -> bool) {
        let parent = record.map_or(EVENT, |field| field.0 as usize);
        let Field { inner, next, .. } = &mut self.fields[parent];
        let expected = inner.get(*next as usize..).unwrap_or_default().iter();
        let is_passed = |inner: &&Inner| !inner.wanted.value && !inner.wanted.fields && pass(&inner.name);
        *next += expected.take_while(is_passed).count() as u32;
    }

    /// A field of a record that came before, if it did.
    #[inline]
    pub fn field_of_before(
        &mut self,
        record: Option<KnownField>,
        name: &str,
    ) -> Option<(KnownField, Wanted)> {
        self.inner_of_before(record.map_or(EVENT, |field| field.0 as usize), name)
    }

    #[inline]
    fn inner_of_before(&mut self, parent: usize, name: &str) -> Option<(KnownField, Wanted)> {
        let record = &mut self.fields[parent];
        let place = *record.by_name.get(name)?;
        record.next = place + 1;
        let Inner { field, wanted, .. } = record.inner[place as usize];
        if wanted.fields {
            self.fields[field.0 as usize].next = 0;
        }
        Some((field, wanted))
    }

    fn unexpected_field(&mut self, parent: usize, name: &str, attributes: &Terms) -> KnownField {
        if let Some((field, _)) = self.inner_of_before(parent, name) {
            self.fields[field.0 as usize].next = 0;
            return field;
        }
        let path = if parent == EVENT { name.into() } else { format!("{}.{name}", self.fields[parent].path) };
        let new = KnownField(self.fields.len() as u32);
        let attribute = attributes.of_field(&path);
        let wanted = Wanted { value: attribute.is_some(), fields: attributes.has_fields(&path) };
        if !wanted.value && !wanted.fields && self.is_large() {
            let field = Field::new(path.into(), None, wanted);
            match self.passing {
                Some(passing) => self.fields[passing.0 as usize] = field,
                None => self.fields.push(field),
            }
            return *self.passing.get_or_insert(new);
        }
        let record = &mut self.fields[parent];
        let place = record.inner.len() as u32;
        self.bytes += path.len() + 2 * name.len();
        record.inner.push(Inner { name: Quoted::new(name), field: new, wanted });
        record.by_name.insert(name.into(), place);
        record.next = place + 1;
        self.fields.push(Field::new(path.into(), attribute, wanted));
        new
    }

    pub fn attribute(&self, field: KnownField) -> Option<TermId> {
        self.fields[field.0 as usize].attribute
    }

    pub fn wanted(&self, field: KnownField) -> Wanted {
        self.fields[field.0 as usize].wanted
    }

    pub fn path(&self, field: KnownField) -> &str {
        &self.fields[field.0 as usize].path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(names: &[&str]) -> Terms {
        let mut attributes = Terms::default();
        for name in names {
            attributes.intern(name);
        }
        attributes
    }

    #[test]
    fn fields_are_known_in_any_order_and_below_any_record() {
        let attributes = attributes(&["a.x", "b", "x"]);
        let mut known = KnownFields::default();
        for names in [["a", "b", "x"], ["x", "a", "b"], ["b", "b", "a"], ["a", "z", "x"]] {
            known.prepare(&attributes);
            for name in names {
                let field = known.field(None, name, &attributes);
                assert_eq!(known.path(field), name);
                assert_eq!(known.attribute(field), attributes.get(name));
                assert_eq!(known.wanted(field).fields, name == "a");
                let inner = known.field(Some(field), "x", &attributes);
                assert_eq!(known.path(inner), format!("{name}.x"));
                assert_eq!(known.attribute(inner).is_some(), name == "a");
            }
        }
    }

    #[test]
    fn other_attributes_forget_what_was_known() {
        let mut known = KnownFields::default();
        let mut wanted_of_x = |attributes: &Terms| {
            known.prepare(attributes);
            let field = known.field(None, "x", attributes);
            (known.attribute(field), known.fields.len())
        };
        let first = attributes(&["x"]);
        let mut second = first.clone();
        assert_eq!(wanted_of_x(&first), (Some(TermId(0)), 2));
        assert_eq!(wanted_of_x(&second), (Some(TermId(0)), 2));
        second.intern("x.y");
        assert_eq!(wanted_of_x(&attributes(&["y", "x"])), (Some(TermId(1)), 2));
        assert_eq!(wanted_of_x(&second), (Some(TermId(0)), 2));
        assert_eq!(wanted_of_x(&Terms::default()), (None, 2));
    }

    #[test]
    fn seen_fields_are_known_until_everything_is_forgotten() {
        let (first, second) = (attributes(&["x"]), attributes(&["y", "x"]));
        let mut known = KnownFields::default();
        known.prepare(&first);
        let field = known.field(None, "x", &first);
        let seen = known.seen(field).unwrap();
        known.prepare(&first);
        let again = known.enter_seen(seen).unwrap();
        assert_eq!((known.path(again), known.attribute(again)), ("x", Some(TermId(0))));
        known.prepare(&second);
        assert!(known.enter_seen(seen).is_none());
        known.prepare(&first);
        assert!(known.enter_seen(seen).is_none());
        for name in 0..2 * MOST_FIELDS {
            known.field(None, &name.to_string(), &first);
        }
        let passing = known.field(None, "another", &first);
        assert!(known.seen(passing).is_none());
    }

    #[test]
    fn random_names_are_forgotten() {
        let attributes = attributes(&["x"]);
        let mut known = KnownFields::default();
        for event in 0..40 {
            known.prepare(&attributes);
            for name in 0..1000 {
                let field = known.field(None, &format!("{event}-{name}"), &attributes);
                assert_eq!(known.attribute(field), None);
            }
            assert!(known.fields.len() <= MOST_FIELDS + 1001);
        }
    }

    #[test]
    fn one_event_with_very_many_names_takes_little_memory() {
        let attributes = attributes(&["x", "y.z"]);
        let mut known = KnownFields::default();
        for _ in 0..2 {
            known.prepare(&attributes);
            for name in 0..100_000 {
                let field = known.field(None, &name.to_string(), &attributes);
                assert_eq!(known.path(field), name.to_string());
                assert_eq!(known.wanted(field), Wanted { value: false, fields: false });
            }
            assert!(known.fields.len() <= MOST_FIELDS + 2);
            // What is wanted is found among them.
            let record = known.field(None, "y", &attributes);
            let inner = known.field(Some(record), "z", &attributes);
            assert_eq!((known.path(inner), known.attribute(inner)), ("y.z", attributes.get("y.z")));
            let other = known.field(Some(record), "other", &attributes);
            assert_eq!((known.path(other), known.attribute(other)), ("y.other", None));
            let wanted = known.field(None, "x", &attributes);
            assert_eq!(known.attribute(wanted), attributes.get("x"));
        }
    }

    #[test]
    fn long_names_are_forgotten_with_their_memory() {
        let attributes = attributes(&["x"]);
        let mut known = KnownFields::default();
        for event in 0..20 {
            known.prepare(&attributes);
            known.field(None, &format!("{event}{}", "n".repeat(300_000)), &attributes);
            assert!(known.bytes < MOST_BYTES + 1_000_000);
        }
        known.prepare(&attributes);
        for name in 0..2 * MOST_FIELDS {
            known.field(None, &name.to_string(), &attributes);
        }
        known.prepare(&attributes);
        assert!(known.fields.capacity() < MOST_FIELDS);
    }
}
