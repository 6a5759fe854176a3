//! From a [`Spec`] to a shared object in the cache.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::cache::{self, Cache};
use super::jobs::{Job, Progress, log};
use super::spec::Spec;
use super::tools::{self, Tools};
use super::{CLOCK_PERIOD_PS, Error, Optimise, Options, header, sources};

/// The C++ side of the bridge, compiled into every model.
const SHIM: &str = include_str!("shim.cpp");

/// Everything that says how a model is made: a change of it makes all entries of the cache stale.
const RECIPE: &str = concat!(
    include_str!("shim.cpp"),
    include_str!("compile.rs"),
    include_str!("header.rs"),
    include_str!("sources.rs")
);

/// Verilator's flags. Registers without an initial value take it from the instance
/// (`--x-initial unique`); lint is not the harness's business but that of `verilator --lint-only`.
const VERILATOR_FLAGS: &[&str] = &[
    "--cc",
    "-O3",
    "--assert",
    "--x-assign",
    "fast",
    "--x-initial",
    "unique",
    "--timescale",
    "1ps/1ps",
    // Many short files and functions spread over the cores; the speed stays the same.
    "--output-split",
    "20000",
    "--output-split-cfuncs",
    "1000",
    "--prefix",
    "Vmodel",
    "-Wno-fatal",
    "-Wno-lint",
    "-Wno-style",
];

/// The compiler's flags. Several models, each with its own copy of Verilator's run-time library and
/// a class of the same name, live in one process: no symbol may be visible to or unique across them.
const CXX_FLAGS: &[&str] = &[
    "-std=gnu++17",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-gnu-unique",
    "-fcf-protection=none",
    "-pthread",
    "-pipe",
    "-w",
    "-DVL_USER_FINISH",
    "-DVL_USER_STOP",
    "-DVL_USER_FATAL",
    "-DVM_SC=0",
    "-DVM_TRACE_VCD=0",
];

/// Source is gathered into compilation units of about this many bytes: enough to outweigh the
/// start of a compiler run, small enough to spread over the cores.
const UNIT_BYTES: u64 = 64 * 1024;

/// Name of the shared object in its cache entry.
const LIBRARY: &str = "model.so";

/// Name of the Verilog file, as Verilator's messages show it.
const SOURCE: &str = "source.v";

/// Name of the file with the milliseconds that the build took.
const TIME: &str = "milliseconds";

/// Name of the header that is precompiled.
const HEADER: &str = "runtime.h";

/// In place of Verilator's macro, which declares a counter at every instance with all its names: `shim.cpp` adds the counters
/// of all instances up and needs the names once.
const COVERAGE: &str = r#"#include "verilated_cov.h"
bool ferroce_point(uint32_t* count, const char* page);
#undef VL_COVER_INSERT
#define VL_COVER_INSERT(context, count, ...) \
    do { \
        if (!ferroce_point(count, pagep)) break; \
        (context)->_inserti(count); \
        (context)->_insertf(__FILE__, __LINE__); \
        (context)->_insertp("hier", name(), __VA_ARGS__); \
    } while (false)
"#;

/// A model in the cache.
pub(super) struct Built {
    pub(super) library: PathBuf,
    /// Compiler runs it took, 0 when it was there already.
    pub(super) compiled: usize,
    /// How long the build took, now or when the cache got it.
    pub(super) time: Duration,
    /// Options it has.
    pub(super) options: Options,
}

/// Takes the model of `spec` from the cache, or builds it.
pub(super) fn build(
    spec: &Spec,
    options: &Options,
    tools: &Tools,
    cache: &Cache,
) -> Result<Built, Error> {
    let ports: String = spec
        .ports
        .iter()
        .map(|p| format!("{} {} {}\n", p.direction, p.width, p.name))
        .collect();
    let key = cache::key(&[
        RECIPE,
        &verilator_flags(spec, options).join(" "),
        &cxx_flags(options).join(" "),
        &tools.verilator_version,
        &tools.cxx_version,
        spec.clock.as_deref().unwrap_or_default(),
        &ports,
        &spec.source,
    ]);
    let mut compiled = 0;
    let entry = cache.entry(&key, |dir| {
        let start = Instant::now();
        let work = dir.join("work");
        fs::create_dir(&work).map_err(Error::io("create", &work))?;
        let build = Build {
            spec,
            options,
            tools,
            cache,
            work: &work,
            progress: Progress::start(&spec.top),
        };
        let log = build.verilate()?;
        write(&dir.join("verilator.log"), &log)?;
        compiled = build.compile(&dir.join(LIBRARY))?;
        let time = start.elapsed().as_millis().to_string();
        write(&dir.join(TIME), &time)?;
        // What the model was made of stays beside it, for whoever looks into the cache.
        fs::rename(work.join(SOURCE), dir.join(SOURCE)).map_err(Error::io("move", &work))?;
        fs::remove_dir_all(&work).map_err(Error::io("remove", &work))
    })?;
    let time = entry.join(TIME);
    let time = fs::read_to_string(&time).map_err(Error::io("read", &time))?;
    Ok(Built {
        library: entry.join(LIBRARY),
        compiled,
        time: Duration::from_millis(time.parse().unwrap_or_default()),
        options: options.clone(),
    })
}

fn verilator_flags<'a>(spec: &'a Spec, options: &Options) -> Vec<&'a str> {
    let mut flags = VERILATOR_FLAGS.to_vec();
    flags.extend(["--top-module", &spec.top]);
    if options.trace {
        // The default leaves out signals of more than 256 bits.
        flags.extend([
            "--trace-fst",
            "--trace-structs",
            "--trace-max-width",
            "8192",
        ]);
    }
    if options.coverage {
        flags.push("--coverage");
    }
    flags
}

fn cxx_flags(options: &Options) -> Vec<String> {
    let mut flags: Vec<String> = CXX_FLAGS.iter().map(ToString::to_string).collect();
    let (trace, coverage) = (u8::from(options.trace), u8::from(options.coverage));
    flags.push(format!("-DVM_TRACE={trace}"));
    flags.push(format!("-DVM_TRACE_FST={trace}"));
    flags.push(format!("-DVM_COVERAGE={coverage}"));
    flags.push(match options.optimise {
        Optimise::Fast => "-O1".into(),
        Optimise::Full => "-O2".into(),
    });
    flags
}

/// Verilator's run-time library, compiled.
struct Runtime {
    /// Header whose precompiled form lies beside it.
    header: PathBuf,
    objects: Vec<PathBuf>,
}

/// One build in its directory `work`.
struct Build<'a> {
    spec: &'a Spec,
    options: &'a Options,
    tools: &'a Tools,
    cache: &'a Cache,
    work: &'a Path,
    progress: Progress,
}

impl Build<'_> {
    /// Verilog to C++; returns what Verilator had to say.
    fn verilate(&self) -> Result<String, Error> {
        write(&self.work.join(SOURCE), &self.spec.source)?;
        let output = tools::run(
            Command::new(&self.tools.verilator)
                .args(verilator_flags(self.spec, self.options))
                .args(["--Mdir", ".", SOURCE])
                .current_dir(self.work),
            "verilator",
        )?;
        if output.status.success() {
            return Ok(log(&output));
        }
        Err(Error::Verilate {
            top: self.spec.top.clone(),
            log: log(&output),
        })
    }

    /// C++ to the shared object `library`; returns the number of units compiled.
    fn compile(&self, library: &Path) -> Result<usize, Error> {
        write(&self.work.join("shim.cpp"), SHIM)?;
        write(&self.work.join("ports.h"), &self.ports_header()?)?;
        let makefile = self.read("Vmodel_classes.mk")?;
        let runtime = self.runtime(&sources::library(&makefile))?;
        let units = sources::units(&makefile, self.work, UNIT_BYTES)?;
        let mut jobs = Vec::new();
        for (number, unit) in units.iter().enumerate() {
            let name = format!("unit{number}.cpp");
            write(&self.work.join(&name), unit)?;
            let mut command = self.compiler(self.work);
            command
                .arg("-include")
                .arg(&runtime.header)
                .arg("-c")
                .arg(&name);
            jobs.push(Job { name, command });
        }
        self.progress.run(jobs)?;

        let mut command = Command::new(&self.tools.cxx);
        command
            .current_dir(self.work)
            .args(["-shared", "-pthread", "-Wl,-z,defs", "-o"])
            .arg(library)
            .args((0..units.len()).map(|number| format!("unit{number}.o")))
            .args(&runtime.objects);
        if self.options.trace {
            command.arg("-lz");
        }
        let name = LIBRARY.into();
        self.progress.run(vec![Job { name, command }])?;
        Ok(units.len())
    }

    /// The clock and the ports as `shim.cpp` wants them.
    fn ports_header(&self) -> Result<String, Error> {
        let members = header::members(self.spec, &self.read("Vmodel.h")?)?;
        let addresses: Vec<_> = members.iter().map(|m| format!("&(model).{m}")).collect();
        let clock = self.spec.clock.as_ref();
        let clock = clock.and_then(|c| self.spec.ports.iter().position(|p| p.name == *c));
        let set_clock =
            clock.map_or_else(String::new, |c| format!("(model).{} = (value)", members[c]));
        Ok(format!(
            "#define FERROCE_HALF_PERIOD_PS {}\n\
             #define FERROCE_SET_CLOCK(model, value) {set_clock}\n\
             #define FERROCE_PORTS(model) {}\n",
            CLOCK_PERIOD_PS / 2,
            addresses.join(", "),
        ))
    }

    /// Verilator's run-time library, which all models built with the same options share: objects
    /// of `sources`, and a precompiled header.
    fn runtime(&self, sources: &[String]) -> Result<Runtime, Error> {
        let key = cache::key(&[
            &cxx_flags(self.options).join(" "),
            &self.tools.verilator_version,
            &self.tools.cxx_version,
            &self.tools.include.to_string_lossy(),
            &sources.join(" "),
        ]);
        let dir = self.cache.entry(&format!("runtime-{key}"), |dir| {
            let mut header = String::from("#include \"verilated.h\"\n");
            if self.options.trace {
                header += "#include \"verilated_fst_c.h\"\n";
            }
            if self.options.coverage {
                header += COVERAGE;
            }
            write(&dir.join(HEADER), &header)?;
            let mut command = self.compiler(dir);
            command.args(["-x", "c++-header", HEADER]);
            let name = HEADER.into();
            let mut jobs = vec![Job { name, command }];
            for source in sources {
                let mut command = self.compiler(dir);
                command.arg("-c").arg(self.tools.include.join(source));
                let name = source.clone();
                jobs.push(Job { name, command });
            }
            self.progress.run(jobs)
        })?;
        let object = |source: &String| dir.join(source).with_extension("o");
        Ok(Runtime {
            header: dir.join(HEADER),
            objects: sources.iter().map(object).collect(),
        })
    }

    /// The C++ compiler, to be run in `dir`.
    fn compiler(&self, dir: &Path) -> Command {
        let mut command = Command::new(&self.tools.cxx);
        let include = &self.tools.include;
        command
            .current_dir(dir)
            .args(cxx_flags(self.options))
            .args(["-I", "."])
            .arg("-I")
            .arg(include)
            .arg("-I")
            .arg(include.join("vltstd"));
        command
    }

    fn read(&self, name: &str) -> Result<String, Error> {
        let path = self.work.join(name);
        fs::read_to_string(&path).map_err(Error::io("read", path))
    }
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::io("write", path))
}
