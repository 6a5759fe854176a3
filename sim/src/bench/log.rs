//! What a monitor saw, against what it was to see.

use std::collections::VecDeque;
use std::fmt::Debug;

/// Arrivals in order. Once anything was expected, every arrival must be the next one expected;
/// before that, arrivals are kept.
#[derive(Debug, Clone)]
pub(super) struct Log<T> {
    name: String,
    expected: VecDeque<T>,
    strict: bool,
    arrived: VecDeque<(u64, T)>,
    count: u64,
}

impl<T: PartialEq + Debug> Log<T> {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            expected: VecDeque::new(),
            strict: false,
            arrived: VecDeque::new(),
            count: 0,
        }
    }

    pub(super) fn expect(&mut self, value: T) {
        self.strict = true;
        self.expected.push_back(value);
    }

    pub(super) fn arrive(&mut self, cycle: u64, value: T) -> Result<(), String> {
        let (name, number) = (&self.name, self.count);
        self.count += 1;
        if !self.strict {
            self.arrived.push_back((cycle, value));
            return Ok(());
        }
        match self.expected.pop_front() {
            Some(wanted) if wanted == value => Ok(()),
            Some(wanted) => Err(format!(
                "`{name}` number {number} differs\n  expected {wanted:?}\n  arrived  {value:?}"
            )),
            None => Err(format!(
                "`{name}` number {number} was not expected: {value:?}"
            )),
        }
    }

    pub(super) fn pop(&mut self) -> Option<(u64, T)> {
        self.arrived.pop_front()
    }

    pub(super) fn pending(&self) -> Option<String> {
        let next = self.expected.front()?;
        let left = self.expected.len();
        Some(format!(
            "`{}` waits for {left} more, next {next:?}",
            self.name
        ))
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }
}
