//! An instance of a model, the device under test: its ports and its time.

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr::{self, NonNull};

use super::model::{Instance, Model, c_path};
use super::ports::Ports;
use super::{Error, Input, Output, Signal};
use crate::bits;

/// An instance of a [`Model`], independent of all others.
///
/// Handles of another model are refused with a panic. A model that stops (`$finish`, `$stop`,
/// `$fatal`, a failed assertion, a combinational loop that does not settle) panics in the call
/// that evaluates it.
#[derive(Debug)]
pub struct Dut {
    model: Model,
    instance: NonNull<Instance>,
    ports: Ports,
}

// SAFETY: an instance owns all it points to, its `VerilatedContext` among that; what Verilator
// keeps per thread is set anew in every call.
unsafe impl Send for Dut {}

impl Dut {
    /// Takes over `instance`, whose ports are at `addresses`, in the order of the model's.
    ///
    /// # Safety
    /// All are what the `create` of this model gave, and nothing else uses them.
    pub(super) unsafe fn new(
        model: Model,
        instance: NonNull<Instance>,
        addresses: &[*mut c_void],
    ) -> Self {
        Self {
            // SAFETY: the instance is valid until drop, and is evaluated by `&mut self` methods only.
            ports: unsafe { Ports::new(model.ports(), addresses) },
            model,
            instance,
        }
    }

    /// The model this is an instance of.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// See [`Model::input`].
    ///
    /// # Errors
    /// As there.
    pub fn input(&self, name: &str) -> Result<Input, Error> {
        self.model.input(name)
    }

    /// See [`Model::output`].
    ///
    /// # Errors
    /// As there.
    pub fn output(&self, name: &str) -> Result<Output, Error> {
        self.model.output(name)
    }

    /// Drives an input of up to 64 bits. Outputs that depend on it without a register follow at the
    /// next evaluation.
    ///
    /// # Panics
    /// If the input is wider than 64 bits or `value` does not fit in it.
    #[inline]
    #[track_caller]
    pub fn set(&mut self, input: Input, value: u64) {
        let signal = self.own(input.0);
        if signal.width > 64 || value & !bits::mask(signal.width()) != 0 {
            self.misfit(signal, value);
        }
        self.ports.store(signal, value);
    }

    /// The value of a signal of up to 64 bits, as of the last evaluation.
    ///
    /// # Panics
    /// If it is wider.
    #[inline]
    #[track_caller]
    pub fn get(&self, signal: impl Into<Signal>) -> u64 {
        let signal = self.own(signal.into());
        let (offset, width) = (signal.offset as usize, signal.width());
        match self.ports.narrow(signal) {
            Some(value) => (value >> offset) & bits::mask(width),
            None => bits::extract(self.wide(signal), offset, width),
        }
    }

    /// Whether a 1-bit signal is set.
    ///
    /// # Panics
    /// If it is wider than 64 bits.
    #[inline]
    #[track_caller]
    pub fn is_set(&self, signal: impl Into<Signal>) -> bool {
        self.get(signal) != 0
    }

    /// Drives an input of any width with 32-bit words, least significant first; bits of the last word
    /// above the width are ignored.
    ///
    /// # Panics
    /// If `value` is not of [`Signal::words`] words.
    #[track_caller]
    pub fn write(&mut self, input: Input, value: &[u32]) {
        let signal = self.own(input.0);
        let (offset, width) = (signal.offset as usize, signal.width());
        // SAFETY: the signal lies within its port, so no bit above that changes.
        if let Some(words) = unsafe { self.ports.wide_mut(signal) } {
            bits::write(words, offset, width, value);
        } else {
            assert_eq!(value.len(), signal.words(), "words for {width} bits");
            self.ports.store(signal, bits::extract(value, 0, width));
        }
    }

    /// Copies a signal of any width into 32-bit words, least significant first.
    ///
    /// # Panics
    /// If `out` is not of [`Signal::words`] words.
    #[track_caller]
    pub fn read(&self, signal: impl Into<Signal>, out: &mut [u32]) {
        let signal = self.own(signal.into());
        let (offset, width) = (signal.offset as usize, signal.width());
        match self.ports.narrow(signal) {
            Some(value) => bits::read(&[value as u32, (value >> 32) as u32], offset, width, out),
            None => bits::read(self.wide(signal), offset, width, out),
        }
    }

    /// The words of a port of more than 64 bits, in the model itself.
    ///
    /// # Panics
    /// If the signal is narrower, or a field of a port.
    #[inline]
    #[track_caller]
    pub fn view(&self, signal: impl Into<Signal>) -> &[u32] {
        let signal = self.own(signal.into());
        self.assert_whole(signal);
        self.wide(signal)
    }

    /// Changes an input port of more than 64 bits in the model itself. Bits of the last word above
    /// the width are cleared when `change` is done: the model relies on them.
    ///
    /// # Panics
    /// If the input is narrower, or a field of a port.
    #[inline]
    #[track_caller]
    pub fn edit<R>(&mut self, input: Input, change: impl FnOnce(&mut [u32]) -> R) -> R {
        struct Clear<'a>(&'a mut [u32], u32);
        impl Drop for Clear<'_> {
            fn drop(&mut self) {
                if let Some(last) = self.0.last_mut() {
                    *last &= self.1;
                }
            }
        }
        let signal = self.own(input.0);
        self.assert_whole(signal);
        let mask = bits::mask((input.width() - 1) % 32 + 1) as u32;
        // SAFETY: `Clear` sees to the bits above the width, also when `change` panics.
        let words = unsafe { self.ports.wide_mut(signal) };
        let words = Clear(words.unwrap_or_default(), mask);
        change(words.0)
    }

    /// Evaluates the model once: outputs follow the inputs, and the edges of clocks that were
    /// [set](Self::set) by hand take effect. Time does not pass.
    #[inline]
    pub fn eval(&mut self) {
        // SAFETY: `instance` is alive until drop, and `&mut self` makes this its only use.
        let status = unsafe { (self.model.table().eval)(self.instance.as_ptr()) };
        self.check(status);
    }

    /// One clock cycle: [`settle`](Self::settle) and [`rise`](Self::rise) in one call. Outputs
    /// of registers then have their new values; an output that depends on an input without a register
    /// has seen the inputs of this cycle.
    #[inline]
    pub fn tick(&mut self) {
        self.ticks(1);
    }

    /// `cycles` clock cycles with the inputs as they are, in one call.
    #[inline]
    pub fn ticks(&mut self, cycles: u64) {
        // SAFETY: as in `eval`.
        let status = unsafe { (self.model.table().tick)(self.instance.as_ptr(), cycles) };
        self.check(status);
    }

    /// First half of a clock cycle: the clock falls, and outputs follow the inputs. What the next rising
    /// edge will see can be read now.
    #[inline]
    pub fn settle(&mut self) {
        // SAFETY: as in `eval`.
        let status = unsafe { (self.model.table().settle)(self.instance.as_ptr()) };
        self.check(status);
    }

    /// Second half of a clock cycle: the clock rises.
    #[inline]
    pub fn rise(&mut self) {
        // SAFETY: as in `eval`.
        let status = unsafe { (self.model.table().rise)(self.instance.as_ptr()) };
        self.check(status);
    }

    /// Lets `ps` pass with the signals as they are, for modules whose clocks are set by hand.
    /// [`tick`](Self::tick) and its halves do so themselves.
    pub fn advance(&mut self, ps: u64) {
        // SAFETY: as in `eval`.
        let status = unsafe { (self.model.table().advance)(self.instance.as_ptr(), ps) };
        self.check(status);
    }

    /// Writes an FST trace of all signals to `path` from now on, until another one is started or
    /// the instance is dropped.
    ///
    /// # Errors
    /// If the model was built without tracing, or the file cannot be created.
    pub fn trace(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        if !self.model.options().trace {
            return Err(self.model.not_built_in("tracing", "trace"));
        }
        let (path, name) = c_path(path.as_ref())?;
        // SAFETY: as in `eval`; `name` outlives the call.
        let status = unsafe { (self.model.table().trace)(self.instance.as_ptr(), name.as_ptr()) };
        if status == 0 {
            return Ok(());
        }
        let cause = std::io::Error::other(self.model.last_error());
        Err(Error::io("create", path)(cause))
    }

    /// Ends the trace, so that its file is complete.
    pub fn end_trace(&mut self) {
        if self.model.options().trace {
            // SAFETY: as in `eval`; null ends the trace.
            let status = unsafe { (self.model.table().trace)(self.instance.as_ptr(), ptr::null()) };
            self.check(status);
        }
    }

    /// Refuses handles of other models.
    #[inline]
    #[track_caller]
    fn own(&self, signal: Signal) -> Signal {
        if signal.model != self.model.number() {
            self.foreign();
        }
        signal
    }

    #[cold]
    #[track_caller]
    fn foreign(&self) -> ! {
        let top = self.model.top();
        panic!(
            "a handle of another model was used on an instance of `{top}`: each build has its own"
        )
    }

    #[inline]
    fn check(&self, status: c_int) {
        if status != 0 {
            self.stopped();
        }
    }

    #[cold]
    fn stopped(&self) -> ! {
        panic!("{}", self.model.stopped())
    }

    /// The words of the port of `signal`, which is not narrow.
    #[inline]
    fn wide(&self, signal: Signal) -> &[u32] {
        self.ports.wide(signal).unwrap_or_default()
    }

    #[track_caller]
    fn assert_whole(&self, signal: Signal) {
        let width = self.model.ports()[signal.port as usize].width;
        assert!(
            signal.width() == width && width > 64,
            "{} is not a port of more than 64 bits: use `read` and `write`",
            self.describe(signal)
        );
    }

    #[cold]
    #[track_caller]
    fn misfit(&self, signal: Signal, value: u64) -> ! {
        panic!(
            "{value:#x} cannot be set: {} (more than 64 bits: use `write`)",
            self.describe(signal)
        )
    }

    fn describe(&self, signal: Signal) -> String {
        let port = &self.model.ports()[signal.port as usize];
        let (low, high) = (signal.offset, signal.offset + signal.width - 1);
        format!("`{}[{high}:{low}]` of `{}`", port.name, self.model.top())
    }
}

impl Drop for Dut {
    fn drop(&mut self) {
        // SAFETY: the instance was made by `create` of the same table and is not used again; the
        // model, and so the library, is dropped after it.
        unsafe { (self.model.table().destroy)(self.instance.as_ptr()) }
    }
}
