//! A transfer of a stream: the values of its payload ports, by field name.

use std::fmt;
use std::sync::Arc;

use crate::bits;
use crate::verilator::{Dut, Error, Field, Input, Signal};

/// Ports and fields of one stream. The ports of an item lie one behind the other, each from a word
/// boundary on.
#[derive(Debug)]
pub(super) struct Layout {
    ports: Vec<(Signal, usize)>,
    fields: Vec<Field>,
    words: usize,
}

impl Layout {
    /// The payload ports `names` of `dut`. A port with fields goes by these, any other by the part
    /// of its name behind `prefix` and `_`.
    pub(super) fn new(dut: &Dut, prefix: &str, names: &[String]) -> Result<Arc<Self>, Error> {
        let mut layout = Self {
            ports: Vec::new(),
            fields: Vec::new(),
            words: 0,
        };
        for name in names {
            let signal = dut.model().signal(name)?;
            let offset = layout.words * 32;
            layout.ports.push((signal, layout.words));
            layout.words += signal.words();
            let port = dut.model().ports().iter().find(|p| p.name == *name);
            let fields = port.map_or(&[][..], |port| &port.fields);
            layout.fields.extend(fields.iter().map(|field| Field {
                offset: offset + field.offset,
                ..field.clone()
            }));
            if fields.is_empty() {
                layout.fields.push(Field {
                    path: name[prefix.len() + 1..].into(),
                    offset,
                    width: signal.width(),
                });
            }
        }
        Ok(Arc::new(layout))
    }

    fn field(&self, path: &str) -> &Field {
        self.fields
            .iter()
            .find(|f| f.path == path)
            .unwrap_or_else(|| {
                let known: Vec<_> = self.fields.iter().map(|f| f.path.as_str()).collect();
                panic!(
                    "the payload has no field `{path}`; it has {}",
                    known.join(", ")
                )
            })
    }
}

/// One transfer of a stream.
///
/// Methods panic, with the names there are, when given a field that the payload does not have.
#[derive(Clone)]
pub struct Item {
    layout: Arc<Layout>,
    words: Vec<u32>,
}

impl PartialEq for Item {
    /// Whether both have the same fields with the same values, be they of one stream or of two.
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words && self.has_fields_of(&other.layout)
    }
}

impl Eq for Item {}

impl Item {
    /// All bits 0.
    pub(super) fn zero(layout: &Arc<Layout>) -> Self {
        Self {
            words: vec![0; layout.words],
            layout: layout.clone(),
        }
    }

    /// The item with `field` set to `value`.
    ///
    /// # Panics
    /// If the field is wider than 64 bits, or `value` does not fit.
    #[must_use]
    pub fn with(mut self, field: &str, value: u64) -> Self {
        self.set(field, value);
        self
    }

    /// Sets `field` to `value`.
    ///
    /// # Panics
    /// If the field is wider than 64 bits, or `value` does not fit.
    pub fn set(&mut self, field: &str, value: u64) {
        let &Field { offset, width, .. } = self.layout.field(field);
        assert!(
            width <= 64 && value & !bits::mask(width) == 0,
            "{value:#x} does not fit in the {width} bits of `{field}`, or they are more than 64"
        );
        bits::insert(&mut self.words, offset, width, value);
    }

    /// The value of `field`.
    ///
    /// # Panics
    /// If the field is wider than 64 bits.
    pub fn get(&self, field: &str) -> u64 {
        let &Field { offset, width, .. } = self.layout.field(field);
        bits::extract(&self.words, offset, width)
    }

    /// Sets `field`, of any width, from 32-bit words, least significant first.
    ///
    /// # Panics
    /// If there are more or fewer words than the field needs.
    pub fn set_words(&mut self, field: &str, value: &[u32]) {
        let &Field { offset, width, .. } = self.layout.field(field);
        bits::write(&mut self.words, offset, width, value);
    }

    /// `field`, of any width, as 32-bit words, least significant first.
    pub fn words(&self, field: &str) -> Vec<u32> {
        let &Field { offset, width, .. } = self.layout.field(field);
        let mut words = vec![0; width.div_ceil(32)];
        bits::read(&self.words, offset, width, &mut words);
        words
    }

    /// Whether the item fits a stream of this layout.
    pub(super) fn has_fields_of(&self, layout: &Arc<Layout>) -> bool {
        Arc::ptr_eq(&self.layout, layout) || self.layout.fields == layout.fields
    }

    /// Drives the item at `inputs`, which are in the order of the layout.
    pub(super) fn put(&self, dut: &mut Dut, inputs: &[Input]) {
        for (input, (signal, at)) in inputs.iter().zip(&self.layout.ports) {
            dut.write(*input, &self.words[*at..at + signal.words()]);
        }
    }

    /// Takes the item from its ports.
    pub(super) fn take(&mut self, dut: &Dut) {
        for (signal, at) in &self.layout.ports {
            dut.read(*signal, &mut self.words[*at..at + signal.words()]);
        }
    }

    /// Replaces all bits by those of `next`, a word at a time.
    pub(super) fn fill(&mut self, mut next: impl FnMut() -> u32) {
        self.words.fill_with(&mut next);
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_map();
        for field in &self.layout.fields {
            let words = self.words(&field.path);
            let digits: String = words.iter().rev().map(|w| format!("{w:08x}")).collect();
            let digits = digits.trim_start_matches('0');
            let digits = if digits.is_empty() { "0" } else { digits };
            fields.entry(&format_args!("{}", field.path), &format_args!("0x{digits}"));
        }
        fields.finish()
    }
}
