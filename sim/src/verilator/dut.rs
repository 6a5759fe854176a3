//! An instance of a model, the device under test: its ports and its time.

use std::ffi::{CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::slice;

use super::model::{Instance, Model};
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
    slots: Box<[Slot]>,
}

/// Where a port lives in the model. Verilator stores up to 64 bits in the smallest integer that
/// holds them, more in 32-bit words, least significant first; bits above the width are 0.
#[derive(Debug, Clone, Copy)]
enum Slot {
    Byte(NonNull<u8>),
    Half(NonNull<u16>),
    Word(NonNull<u32>),
    Long(NonNull<u64>),
    Wide(NonNull<u32>, usize),
}

impl Slot {
    fn new(address: *mut c_void, width: usize) -> Self {
        let address = NonNull::new(address).expect("the model has an address for every port");
        match width {
            1..=8 => Self::Byte(address.cast()),
            9..=16 => Self::Half(address.cast()),
            17..=32 => Self::Word(address.cast()),
            33..=64 => Self::Long(address.cast()),
            _ => Self::Wide(address.cast(), width.div_ceil(32)),
        }
    }
}

// SAFETY: an instance owns all it points to, its `VerilatedContext` among that; what Verilator
// keeps per thread is set anew in every call.
unsafe impl Send for Dut {}

impl Dut {
    /// Wraps `instance`, whose ports are at `addresses`, in the order of the model's.
    pub(super) fn new(
        model: Model,
        instance: NonNull<Instance>,
        addresses: &[*mut c_void],
    ) -> Self {
        let slots = model.ports().iter().zip(addresses);
        Self {
            slots: slots
                .map(|(port, address)| Slot::new(*address, port.width))
                .collect(),
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
        let signal = input.0;
        if signal.width > 64 || value & !bits::mask(signal.width()) != 0 {
            self.misfit(signal, value);
        }
        self.store(signal, value);
    }

    /// The value of a signal of up to 64 bits, as of the last evaluation.
    ///
    /// # Panics
    /// If it is wider.
    #[inline]
    #[track_caller]
    pub fn get(&self, signal: impl Into<Signal>) -> u64 {
        let signal = signal.into();
        match self.narrow(signal) {
            Some(value) => (value >> signal.offset) & bits::mask(signal.width()),
            None => bits::extract(self.words(signal), signal.offset as usize, signal.width()),
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
        let signal = input.0;
        if let Slot::Wide(..) = self.slot(signal) {
            let (offset, width) = (signal.offset as usize, signal.width());
            bits::write(self.words_mut(signal), offset, width, value);
        } else {
            assert_eq!(
                value.len(),
                signal.words(),
                "words for {} bits",
                signal.width
            );
            self.store(signal, bits::extract(value, 0, signal.width()));
        }
    }

    /// Copies a signal of any width into 32-bit words, least significant first.
    ///
    /// # Panics
    /// If `out` is not of [`Signal::words`] words.
    #[track_caller]
    pub fn read(&self, signal: impl Into<Signal>, out: &mut [u32]) {
        let signal = signal.into();
        match self.narrow(signal) {
            Some(value) => {
                let words = [value as u32, (value >> 32) as u32];
                bits::read(&words, signal.offset as usize, signal.width(), out);
            }
            None => bits::read(
                self.words(signal),
                signal.offset as usize,
                signal.width(),
                out,
            ),
        }
    }

    /// The words of a port of more than 64 bits, in the model itself.
    ///
    /// # Panics
    /// If the signal is narrower, or a field of a port.
    #[inline]
    #[track_caller]
    pub fn view(&self, signal: impl Into<Signal>) -> &[u32] {
        let signal = signal.into();
        self.assert_whole(signal);
        self.words(signal)
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
        self.assert_whole(input.0);
        let mask = bits::mask((input.width() - 1) % 32 + 1) as u32;
        let words = Clear(self.words_mut(input.0), mask);
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
            return Err(self.not_built_in("tracing", "trace"));
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

    /// Writes the coverage so far to `path`, in the form `verilator_coverage` reads.
    ///
    /// # Errors
    /// If the model was built without coverage, or the file cannot be written.
    pub fn write_coverage(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        if !self.model.options().coverage {
            return Err(self.not_built_in("coverage", "coverage"));
        }
        let (path, name) = c_path(path.as_ref())?;
        // SAFETY: as in `eval`; `name` outlives the call.
        let status =
            unsafe { (self.model.table().write_coverage)(self.instance.as_ptr(), name.as_ptr()) };
        if status == 0 {
            return Ok(());
        }
        let cause = std::io::Error::other(self.model.last_error());
        Err(Error::io("write", path)(cause))
    }

    /// The place of the port of `signal`.
    #[inline]
    #[track_caller]
    fn slot(&self, signal: Signal) -> Slot {
        assert!(
            signal.model == self.model.number(),
            "a handle of another model was used on an instance of `{}`: handles are resolved per build",
            self.model.top()
        );
        self.slots[signal.port as usize]
    }

    /// The whole port of `signal`, if of up to 64 bits.
    #[inline]
    #[track_caller]
    fn narrow(&self, signal: Signal) -> Option<u64> {
        // SAFETY: the address is that of the port's own variable in the live instance, of the type
        // Verilator gives its width; only `&mut self` methods let it change.
        unsafe {
            match self.slot(signal) {
                Slot::Byte(at) => Some(u64::from(at.read())),
                Slot::Half(at) => Some(u64::from(at.read())),
                Slot::Word(at) => Some(u64::from(at.read())),
                Slot::Long(at) => Some(at.read()),
                Slot::Wide(..) => None,
            }
        }
    }

    /// Replaces `signal`, of up to 64 bits, by the lowest bits of `value`.
    #[inline]
    #[track_caller]
    fn store(&mut self, signal: Signal, value: u64) {
        let (offset, width) = (signal.offset as usize, signal.width());
        let merge = |old: u64| {
            let mask = bits::mask(width) << offset;
            (old & !mask) | ((value << offset) & mask)
        };
        // SAFETY: as in `narrow`, and `&mut self` makes this the only access. Bits above the port's
        // width stay 0, as the signal lies within it.
        unsafe {
            match self.slot(signal) {
                Slot::Byte(at) => at.write(merge(at.read().into()) as u8),
                Slot::Half(at) => at.write(merge(at.read().into()) as u16),
                Slot::Word(at) => at.write(merge(at.read().into()) as u32),
                Slot::Long(at) => at.write(merge(at.read())),
                Slot::Wide(..) => bits::insert(self.words_mut(signal), offset, width, value),
            }
        }
    }

    /// The words of the port of `signal`, of more than 64 bits.
    #[inline]
    #[track_caller]
    fn words(&self, signal: Signal) -> &[u32] {
        match self.slot(signal) {
            // SAFETY: a port of more than 64 bits is an array of this many words in the live
            // instance; only `&mut self` methods let it change.
            Slot::Wide(at, words) => unsafe { slice::from_raw_parts(at.as_ptr(), words) },
            _ => self.not_wide(signal),
        }
    }

    /// The words of the port of `signal`, of more than 64 bits. Whoever changes them leaves the bits
    /// above the port's width 0: the model indexes its memories with them.
    #[inline]
    #[track_caller]
    fn words_mut(&mut self, signal: Signal) -> &mut [u32] {
        match self.slot(signal) {
            // SAFETY: as in `words`, and `&mut self` makes this the only access.
            Slot::Wide(at, words) => unsafe { slice::from_raw_parts_mut(at.as_ptr(), words) },
            _ => self.not_wide(signal),
        }
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

    fn assert_whole(&self, signal: Signal) {
        let width = self.port_width(signal);
        assert!(
            signal.width() == width && width > 64,
            "{} is not a port of more than 64 bits: use `read` and `write`",
            self.describe(signal)
        );
    }

    fn not_wide(&self, signal: Signal) -> ! {
        panic!("{} has no words of its own", self.describe(signal))
    }

    #[cold]
    #[track_caller]
    fn misfit(&self, signal: Signal, value: u64) -> ! {
        panic!(
            "{value:#x} cannot be set: {} (more than 64 bits: use `write`)",
            self.describe(signal)
        )
    }

    fn port_width(&self, signal: Signal) -> usize {
        self.model.ports()[signal.port as usize].width
    }

    fn describe(&self, signal: Signal) -> String {
        let port = &self.model.ports()[signal.port as usize];
        let (low, high) = (signal.offset, signal.offset + signal.width - 1);
        format!("`{}[{high}:{low}]` of `{}`", port.name, self.model.top())
    }

    fn not_built_in(&self, what: &'static str, option: &'static str) -> Error {
        Error::NotBuiltIn {
            top: self.model.top().to_owned(),
            what,
            option,
        }
    }
}

impl Drop for Dut {
    fn drop(&mut self) {
        // SAFETY: the instance was made by `create` of the same table and is not used again; the
        // model, and so the library, is dropped after it.
        unsafe { (self.model.table().destroy)(self.instance.as_ptr()) }
    }
}

/// `path` as C wants it.
fn c_path(path: &Path) -> Result<(&Path, CString), Error> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|nul| Error::io("create", path)(nul.into()))?;
    Ok((path, name))
}
