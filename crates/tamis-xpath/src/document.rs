//! A document as a few flat arrays, in document order.
//!
//! ```text
//! elements    name, parent, end of its descendants, its first attribute and text, its run of `text`
//! attributes  name, run of `values`
//! texts       run of `text`, the next text of the same parent
//! text        all character data of the document: what an element contains is one run of it
//! names       distinct names, by which elements and attributes are compared as numbers
//! ```
//!
//! The elements below element `i` are `i + 1 .. end`, so neither a tree nor pointers are needed. The memory of the
//! arrays is reused from document to document.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

use crate::error::DocumentError;
use crate::reader::{self, Limits};

pub(crate) const NONE: u32 = u32::MAX;

/// An XML document that was read; made for many paths to look at.
#[derive(Default)]
pub struct Document {
    pub(crate) elements: Vec<Element>,
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) texts: Vec<Text>,
    pub(crate) text: String,
    pub(crate) values: String,
    pub(crate) names: Names,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Element {
    pub name: u32,
    /// [`NONE`] for the root.
    pub parent: u32,
    /// After its last descendant.
    pub end: u32,
    pub first_attribute: u32,
    pub first_text: u32,
    pub text_start: u32,
    pub text_end: u32,
    /// In the source.
    pub offset: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Attribute {
    pub name: u32,
    pub start: u32,
    pub end: u32,
    pub offset: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    pub start: u32,
    pub end: u32,
    /// The next text of the same parent, or [`NONE`].
    pub next: u32,
    pub offset: u32,
}

/// Any node that a path can select.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// The document itself, above the root.
    Document,
    Element(u32),
    Attribute(u32),
    Text(u32),
}

impl Document {
    /// Reads a document. It must be well-formed and within the limits; external entities are never read.
    ///
    /// ```
    /// use tamis_xpath::{Document, Limits};
    /// let error = Document::read("<a>\n <b></a>", &Limits::default()).err().unwrap();
    /// assert_eq!((error.line, error.column), (2, 5));
    /// ```
    pub fn read(text: &str, limits: &Limits) -> Result<Self, DocumentError> {
        let mut document = Self::default();
        document.replace(text, limits)?;
        Ok(document)
    }

    /// Reads another document into the memory of this one. After an error it is empty.
    pub fn replace(&mut self, text: &str, limits: &Limits) -> Result<(), DocumentError> {
        self.clear();
        let read = reader::read(text, limits, self);
        if read.is_err() {
            self.clear();
        }
        read
    }

    fn clear(&mut self) {
        self.elements.clear();
        self.attributes.clear();
        self.texts.clear();
        self.text.clear();
        self.values.clear();
        self.names.clear();
    }

    /// How many elements it has.
    pub fn element_count(&self) -> usize {
        self.elements.len()
    }

    /// The bytes that it holds on to.
    pub fn heap_bytes(&self) -> usize {
        self.elements.capacity() * size_of::<Element>()
            + self.attributes.capacity() * size_of::<Attribute>()
            + self.texts.capacity() * size_of::<Text>()
            + self.text.capacity()
            + self.values.capacity()
    }

    pub(crate) fn attributes_of(&self, element: u32) -> std::ops::Range<u32> {
        let first = self.elements[element as usize].first_attribute;
        let end = self
            .elements
            .get(element as usize + 1)
            .map_or(self.attributes.len() as u32, |next| next.first_attribute);
        first..end
    }

    pub(crate) fn children(&self, element: u32) -> impl Iterator<Item = u32> {
        let end = self.elements[element as usize].end;
        let mut next = element + 1;
        std::iter::from_fn(move || {
            let child = next;
            (child < end).then(|| {
                next = self.elements[child as usize].end;
                child
            })
        })
    }

    pub(crate) fn texts_of(&self, element: u32) -> impl Iterator<Item = u32> {
        let mut next = self.elements[element as usize].first_text;
        std::iter::from_fn(move || {
            let text = next;
            (text != NONE).then(|| {
                next = self.texts[text as usize].next;
                text
            })
        })
    }

    /// What XPath calls the string value of a node.
    pub(crate) fn string_value(&self, node: Node) -> &str {
        let (pool, start, end) = match node {
            Node::Document => (&self.text, 0, self.text.len() as u32),
            Node::Element(at) => {
                let element = &self.elements[at as usize];
                (&self.text, element.text_start, element.text_end)
            }
            Node::Attribute(at) => {
                let attribute = &self.attributes[at as usize];
                (&self.values, attribute.start, attribute.end)
            }
            Node::Text(at) => {
                let text = &self.texts[at as usize];
                (&self.text, text.start, text.end)
            }
        };
        &pool[start as usize..end as usize]
    }

    /// Nodes sort by it in document order.
    pub(crate) fn offset(&self, node: Node) -> u32 {
        match node {
            Node::Document => 0,
            Node::Element(at) => self.elements[at as usize].offset,
            Node::Attribute(at) => self.attributes[at as usize].offset,
            Node::Text(at) => self.texts[at as usize].offset,
        }
    }
}

/// Distinct names with their namespaces.
#[derive(Default)]
pub(crate) struct Names {
    all: Vec<NameEntry>,
    pool: String,
    namespaces: Vec<Box<str>>,
    by_text: HashTable<u32>,
    by_uri: HashTable<u32>,
    /// Documents choose their names, so the hash has a secret key.
    hasher: DefaultHashBuilder,
}

#[derive(Clone, Copy)]
struct NameEntry {
    namespace: u32,
    start: u32,
    end: u32,
}

impl Names {
    fn clear(&mut self) {
        self.all.clear();
        self.pool.clear();
        self.namespaces.clear();
        self.by_text.clear();
        self.by_uri.clear();
    }

    /// The number of a namespace.
    pub fn namespace(&mut self, uri: &str) -> u32 {
        let Self { namespaces, by_uri, hasher, .. } = self;
        let hash = |uri: &str| hasher.hash_one(uri);
        if let Some(known) = by_uri.find(hash(uri), |at| *namespaces[*at as usize] == *uri) {
            return *known;
        }
        let number = namespaces.len() as u32;
        namespaces.push(uri.into());
        by_uri.insert_unique(hash(uri), number, |at| hash(&namespaces[*at as usize]));
        number
    }

    /// The number of a name, a new one if it was not seen before.
    pub fn intern(&mut self, namespace: u32, local: &str) -> u32 {
        let Self { all, pool, by_text, hasher, .. } = self;
        let hash = |namespace: u32, local: &str| hasher.hash_one((namespace, local));
        let text = |entry: NameEntry| &pool[entry.start as usize..entry.end as usize];
        let same = |at: &u32| all[*at as usize].namespace == namespace && text(all[*at as usize]) == local;
        if let Some(known) = by_text.find(hash(namespace, local), same) {
            return *known;
        }
        let number = all.len() as u32;
        by_text.insert_unique(hash(namespace, local), number, |at| {
            let entry = all[*at as usize];
            hash(entry.namespace, text(entry))
        });
        let start = pool.len() as u32;
        pool.push_str(local);
        all.push(NameEntry { namespace, start, end: pool.len() as u32 });
        number
    }

    /// All names in the order of their numbers: namespace and local name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        (0..self.all.len() as u32).map(|name| self.name(name))
    }

    pub fn name(&self, name: u32) -> (&str, &str) {
        let entry = self.all[name as usize];
        (&self.namespaces[entry.namespace as usize], &self.pool[entry.start as usize..entry.end as usize])
    }
}
