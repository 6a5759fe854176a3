//! A loaded model: its C functions and its ports.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use libloading::Library;
use libloading::os::unix;

use super::compile::Built;
use super::spec::{Direction, Port, Spec};
use super::{Dut, Error, Input, Options, Output, Signal};

/// A verilated module, loaded; cheap to clone.
#[derive(Debug, Clone)]
pub struct Model(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    number: u32,
    top: String,
    clock: Option<String>,
    options: Options,
    compiled: usize,
    time: Duration,
    ports: Vec<Port>,
    signals: BTreeMap<String, (Direction, Signal)>,
    table: Table,
    /// Holds the code that `table` points to.
    _library: Library,
}

/// One instance on the C++ side.
#[repr(C)]
pub(super) struct Instance {
    _opaque: [u8; 0],
}

/// The functions of a model, as `shim.cpp` lays them out. Those that return a number return 0, or
/// 1 and leave a text for `error`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    size: u64,
    create: unsafe extern "C" fn(c_int, *mut *mut Instance, *mut *mut c_void) -> c_int,
    pub(super) destroy: unsafe extern "C" fn(*mut Instance),
    pub(super) eval: unsafe extern "C" fn(*mut Instance) -> c_int,
    pub(super) settle: unsafe extern "C" fn(*mut Instance) -> c_int,
    pub(super) rise: unsafe extern "C" fn(*mut Instance) -> c_int,
    pub(super) tick: unsafe extern "C" fn(*mut Instance, u64) -> c_int,
    pub(super) advance: unsafe extern "C" fn(*mut Instance, u64) -> c_int,
    pub(super) trace: unsafe extern "C" fn(*mut Instance, *const c_char) -> c_int,
    write_coverage: unsafe extern "C" fn(*const c_char) -> c_int,
    error: unsafe extern "C" fn() -> *const c_char,
}

impl Model {
    /// Loads the shared object built for `spec`.
    pub(super) fn load(spec: &Spec, built: Built) -> Result<Self, Error> {
        let error = |source| Error::Load {
            path: built.library.clone(),
            source,
        };
        // RTLD_LOCAL: every model has classes of the same name.
        let flags = unix::RTLD_NOW | unix::RTLD_LOCAL;
        // SAFETY: the file comes out of our own cache, whose entries are whole; its initialisers are
        // those of Verilator's run-time library and touch nothing outside it.
        let library = unsafe { unix::Library::open(Some(&built.library), flags) };
        let library = Library::from(library.map_err(error)?);
        // SAFETY: `shim.cpp`, whose text is part of the cache key, defines this symbol as a constant
        // of the layout of `Table`; the copy made here is used only while the library is held.
        let table = unsafe {
            **library
                .get::<*const Table>(b"ferroce_model\0")
                .map_err(error)?
        };
        assert_eq!(
            table.size,
            size_of::<Table>() as u64,
            "shim.cpp and model.rs disagree"
        );

        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Ok(Self(Arc::new(Loaded {
            number,
            top: spec.top.clone(),
            clock: spec.clock.clone(),
            options: built.options,
            compiled: built.compiled,
            time: built.time,
            signals: signals(number, &spec.ports),
            ports: spec.ports.clone(),
            table,
            _library: library,
        })))
    }

    /// Makes an instance; registers without an initial value start at 0.
    ///
    /// # Errors
    /// [`Error::Stopped`] if an initial block stops the model.
    pub fn instance(&self) -> Result<Dut, Error> {
        self.create(0)
    }

    /// Makes an instance whose registers without an initial value start at values drawn from
    /// `seed`: what a reset does not set stays random.
    ///
    /// # Errors
    /// [`Error::Stopped`] if an initial block stops the model.
    pub fn instance_randomised(&self, seed: u64) -> Result<Dut, Error> {
        // Verilator wants 31 bits, and takes 0 for "choose one".
        let folded = (seed ^ (seed >> 31)) as c_int & c_int::MAX;
        self.create(folded.max(1))
    }

    fn create(&self, seed: c_int) -> Result<Dut, Error> {
        let mut instance = ptr::null_mut();
        let mut addresses = vec![ptr::null_mut(); self.0.ports.len()];
        // SAFETY: `create` writes the instance, and one address per port of the spec, which is what
        // `addresses` has room for.
        let status =
            unsafe { (self.0.table.create)(seed, &raw mut instance, addresses.as_mut_ptr()) };
        match NonNull::new(instance) {
            Some(instance) if status == 0 => {
                // SAFETY: `create` succeeded, and its results are given away here.
                Ok(unsafe { Dut::new(self.clone(), instance, &addresses) })
            }
            _ => Err(self.stopped()),
        }
    }

    /// Writes what the instances that are gone have covered together to `path`, in the form `verilator_coverage` reads. A bit
    /// that changed once in the life of an instance is not covered by it: both directions count.
    ///
    /// # Errors
    /// If the model was built without coverage, or the file cannot be written.
    pub fn write_coverage(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        if !self.0.options.coverage {
            return Err(self.not_built_in("coverage", "coverage"));
        }
        let (path, name) = c_path(path.as_ref())?;
        // SAFETY: `name` outlives the call, which takes no instance.
        let status = unsafe { (self.0.table.write_coverage)(name.as_ptr()) };
        if status == 0 {
            return Ok(());
        }
        let cause = std::io::Error::other(self.last_error());
        Err(Error::io("write", path)(cause))
    }

    pub(super) fn not_built_in(&self, what: &'static str, option: &'static str) -> Error {
        let top = self.0.top.clone();
        Error::NotBuiltIn { top, what, option }
    }

    /// Name of the top module.
    pub fn top(&self) -> &str {
        &self.0.top
    }

    /// Name of the clock, if there is one.
    pub fn clock(&self) -> Option<&str> {
        self.0.clock.as_deref()
    }

    /// Ports of the top module, as the spec lists them.
    pub fn ports(&self) -> &[Port] {
        &self.0.ports
    }

    /// The options the model was built with.
    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// Number of compilation units this build compiled; 0 when the cache had it.
    pub fn compiled(&self) -> usize {
        self.0.compiled
    }

    /// How long Verilator and the compiler took, now or when the cache got the model.
    pub fn build_time(&self) -> Duration {
        self.0.time
    }

    /// The input `name`, a port or `port.field`.
    ///
    /// # Errors
    /// No such input, with the names nearest to it.
    pub fn input(&self, name: &str) -> Result<Input, Error> {
        self.find(name, Some(Direction::Input)).map(Input)
    }

    /// The output `name`, a port or `port.field`.
    ///
    /// # Errors
    /// No such output, with the names nearest to it.
    pub fn output(&self, name: &str) -> Result<Output, Error> {
        self.find(name, Some(Direction::Output)).map(Output)
    }

    /// The input or output `name`, a port or `port.field`.
    ///
    /// # Errors
    /// No such signal, with the names nearest to it.
    pub fn signal(&self, name: &str) -> Result<Signal, Error> {
        self.find(name, None)
    }

    fn find(&self, name: &str, direction: Option<Direction>) -> Result<Signal, Error> {
        let top = || self.0.top.clone();
        match (self.0.signals.get(name), direction) {
            (Some(&(is, _)), Some(wanted)) if is != wanted => Err(Error::WrongDirection {
                top: top(),
                name: name.into(),
                is,
            }),
            (Some(&(_, signal)), _) => Ok(signal),
            (None, _) => Err(Error::NoSignal {
                top: top(),
                kind: match direction {
                    Some(Direction::Input) => "input",
                    Some(Direction::Output) => "output",
                    None => "signal",
                },
                name: name.into(),
                near: self.near(name, direction),
            }),
        }
    }

    /// Up to five names like `name`, best first.
    fn near(&self, name: &str, direction: Option<Direction>) -> Vec<String> {
        let mut names: Vec<_> = self
            .0
            .signals
            .iter()
            .filter(|(_, (is, _))| direction.is_none_or(|wanted| *is == wanted))
            .map(|(other, _)| (strsim::damerau_levenshtein(name, other), other))
            .collect();
        names.sort();
        names
            .into_iter()
            .take(5)
            .map(|(_, other)| other.clone())
            .collect()
    }

    pub(super) fn number(&self) -> u32 {
        self.0.number
    }

    pub(super) fn table(&self) -> &Table {
        &self.0.table
    }

    /// The error of the call that just failed on this thread.
    pub(super) fn stopped(&self) -> Error {
        Error::Stopped {
            top: self.0.top.clone(),
            what: self.last_error(),
        }
    }

    /// Text of the call that just failed on this thread.
    pub(super) fn last_error(&self) -> String {
        // SAFETY: `error` returns a C string that is valid until the next call on this thread, and it
        // is copied before that.
        let text = unsafe { CStr::from_ptr((self.0.table.error)()) };
        text.to_string_lossy().into_owned()
    }
}

/// `path` as C wants it.
pub(super) fn c_path(path: &Path) -> Result<(&Path, CString), Error> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|nul| Error::io("create", path)(nul.into()))?;
    Ok((path, name))
}

/// All names that can be asked for. The ports were checked against the model when it was built: every
/// range lies within its port.
fn signals(model: u32, ports: &[Port]) -> BTreeMap<String, (Direction, Signal)> {
    let mut signals = BTreeMap::new();
    for (index, port) in ports.iter().enumerate() {
        let mut add = |name: String, offset: usize, width: usize| {
            let signal = Signal {
                model,
                port: index as u32,
                offset: offset as u32,
                width: width as u32,
            };
            signals.insert(name, (port.direction, signal));
        };
        add(port.name.clone(), 0, port.width);
        for field in &port.fields {
            add(
                format!("{}.{}", port.name, field.path),
                field.offset,
                field.width,
            );
        }
    }
    signals
}
