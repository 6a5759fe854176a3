//! All-zero constant: the start of a payload of which only some fields matter.
use crate::prelude::*;
use rust_hdl_core::prelude::{Block, Logic, Probe};

/// The value of `T` whose bits are all 0.
#[derive(Clone, Copy, Debug)]
pub struct Zero<T: Synth>(Constant<T>);

impl<T: Synth> Zero<T> {
    /// The value.
    pub fn val(&self) -> T {
        self.0.val()
    }
}

impl<T: Synth> Default for Zero<T> {
    fn default() -> Self {
        Self(Constant::new(T::default()))
    }
}

impl<T: Synth> Logic for Zero<T> {
    fn update(&mut self) {}
}

impl<T: Synth> Block for Zero<T> {
    fn connect_all(&mut self) {
        self.0.connect_all();
    }
    fn update_all(&mut self) {}
    fn has_changed(&self) -> bool {
        false
    }
    fn accept(&self, name: &str, probe: &mut dyn Probe) {
        self.0.accept(name, probe);
    }
}
