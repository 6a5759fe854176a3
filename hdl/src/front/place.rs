//! Reading and writing by plain name.
//!
//! `At(&x).get()` is the value of a signal, register or constant, a reference to a block or interface, or the field of a
//! value as it is; which of them, method resolution decides. So `s.payload.psn` needs no knowledge of where the signal
//! ends and the record begins.
use rust_hdl_core::prelude::*;

use crate::cell::reg::{Dff, Reg};
use crate::cell::zero::Zero;

/// A place that is read.
pub struct At<'a, X: ?Sized>(pub &'a X);

macro_rules! signals {
    ($($direction: ty),+) => {
        $(impl<T: Synth> At<'_, Signal<$direction, T>> {
            /// Its value.
            pub fn get(self) -> T {
                self.0.val()
            }
        })+
    };
}
signals!(In, Out, Local);

impl<T: Synth> At<'_, Reg<T>> {
    /// What it holds.
    pub fn get(self) -> T {
        self.0.q.val()
    }
}

impl<T: Synth> At<'_, Dff<T>> {
    /// What it holds.
    pub fn get(self) -> T {
        self.0.q.val()
    }
}

impl<T: Synth> At<'_, Constant<T>> {
    /// Its value.
    pub fn get(self) -> T {
        self.0.val()
    }
}

impl<T: Synth> At<'_, Zero<T>> {
    /// Its value.
    pub fn get(self) -> T {
        self.0.val()
    }
}

/// A block, an interface, or an array of such: the way goes on.
pub trait GetBlock<'a> {
    /// What stands there.
    type Place: ?Sized;
    /// It.
    fn get(self) -> &'a Self::Place;
}

impl<'a, B: Block> GetBlock<'a> for At<'a, B> {
    type Place = B;
    fn get(self) -> &'a B {
        self.0
    }
}

/// A field of a value.
pub trait GetValue {
    /// Its type.
    type Value;
    /// Its value.
    fn get(self) -> Self::Value;
}

impl<T: Synth> GetValue for At<'_, T> {
    type Value = T;
    fn get(self) -> T {
        *self.0
    }
}

/// A place that is written.
pub struct AtMut<'a, X: ?Sized>(pub &'a mut X);

impl<'a, D: Direction, T: Synth> AtMut<'a, Signal<D, T>> {
    /// Its next value.
    pub fn open(self) -> &'a mut T {
        &mut self.0.next
    }
}

impl<'a, T: Synth> AtMut<'a, Reg<T>> {
    /// What it takes at the next edge.
    pub fn open(self) -> &'a mut T {
        &mut self.0.d.next
    }
}

impl<'a, T: Synth> AtMut<'a, Dff<T>> {
    /// What it takes at the next edge.
    pub fn open(self) -> &'a mut T {
        &mut self.0.d.next
    }
}

/// A block, an interface, or an array of such: the way goes on.
pub trait OpenBlock<'a> {
    /// What stands there.
    type Place: ?Sized;
    /// It.
    fn open(self) -> &'a mut Self::Place;
}

impl<'a, B: Block> OpenBlock<'a> for AtMut<'a, B> {
    type Place = B;
    fn open(self) -> &'a mut B {
        self.0
    }
}

/// A field of a value.
pub trait OpenValue<'a> {
    /// Its type.
    type Value;
    /// It.
    fn open(self) -> &'a mut Self::Value;
}

impl<'a, T: Synth> OpenValue<'a> for AtMut<'a, T> {
    type Value = T;
    fn open(self) -> &'a mut T {
        self.0
    }
}
