//! The programs a build runs: Verilator and a C++ compiler.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;

use super::{Error, Options};

/// Oldest Verilator that serves: the one of Debian 12.
const OLDEST: (u32, u32) = (5, 6);

/// Tools found, with what tells one build from another.
#[derive(Debug, Clone)]
pub(super) struct Tools {
    pub(super) verilator: PathBuf,
    /// Version line of Verilator.
    pub(super) verilator_version: String,
    /// Directory of the run-time library's sources.
    pub(super) include: PathBuf,
    pub(super) cxx: PathBuf,
    /// Version line of the compiler.
    pub(super) cxx_version: String,
}

impl Tools {
    /// Finds the tools and asks for their versions, once per process.
    pub(super) fn find(options: &Options) -> Result<Self, Error> {
        static FOUND: Mutex<Vec<Tools>> = Mutex::new(Vec::new());
        let verilator = program(options.verilator.as_deref(), "VERILATOR", "verilator");
        let cxx = program(options.cxx.as_deref(), "CXX", "g++");
        let mut found = FOUND.lock().unwrap_or_else(|poison| poison.into_inner());
        if let Some(tools) = found
            .iter()
            .find(|t| t.verilator == verilator && t.cxx == cxx)
        {
            return Ok(tools.clone());
        }
        let ask = |args: &[&str]| {
            run(Command::new(&verilator).args(args), "verilator").map(|output| first_line(&output))
        };
        let include = Path::new(&ask(&["--getenv", "VERILATOR_ROOT"])?).join("include");
        let config = fs::read_to_string(include.join("verilated_config.h")).unwrap_or_default();
        let verilator_version = version(&ask(&["--version"])?, &config);
        if !is_supported(&verilator_version) {
            return Err(Error::Version {
                found: verilator_version,
            });
        }
        let cxx_version = first_line(&run(Command::new(&cxx).arg("--version"), "g++")?);
        let tools = Self {
            include,
            verilator,
            verilator_version,
            cxx,
            cxx_version,
        };
        found.push(tools.clone());
        Ok(tools)
    }
}

/// Runs `command` to its end; `package` brings the program.
pub(super) fn run(command: &mut Command, package: &'static str) -> Result<Output, Error> {
    command.output().map_err(|source| {
        let program = Path::new(command.get_program());
        if source.kind() == ErrorKind::NotFound {
            Error::Missing {
                what: program.display().to_string(),
                package,
            }
        } else {
            Error::io("run", program)(source)
        }
    })
}

fn program(given: Option<&Path>, variable: &str, default: &str) -> PathBuf {
    given.map_or_else(
        || std::env::var_os(variable).map_or_else(|| default.into(), PathBuf::from),
        Path::to_path_buf,
    )
}

fn first_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// The version line `printed`; a package built outside of its repository (that of PyPI) prints none
/// but the build, and has the number in `config`, its `verilated_config.h`.
fn version(printed: &str, config: &str) -> String {
    if printed.starts_with("Verilator ") {
        return printed.to_owned();
    }
    let number = config
        .lines()
        .find_map(|line| line.strip_prefix("#define VERILATOR_VERSION \""))
        .and_then(|rest| rest.split('"').next());
    match number {
        Some(number) => format!("Verilator {number} {printed}"),
        None => printed.to_owned(),
    }
}

/// Whether a version line such as `Verilator 5.006 2023-01-22` names a 5.x from [`OLDEST`] on.
fn is_supported(line: &str) -> bool {
    let version = line.strip_prefix("Verilator ").and_then(|rest| {
        let (major, minor) = rest.split_whitespace().next()?.split_once('.')?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    });
    version.is_some_and(|v| v.0 == OLDEST.0 && v >= OLDEST)
}

#[cfg(test)]
mod tests {
    use super::{is_supported, version};

    #[test]
    fn a_version_that_is_not_printed_stands_in_the_header() {
        let config =
            "#define VERILATOR_PRODUCT \"Verilator\"\n#define VERILATOR_VERSION \"5.49\"\n";
        let found = version("rev vUNKNOWN-built20260516-4e853d8", config);
        assert_eq!(found, "Verilator 5.49 rev vUNKNOWN-built20260516-4e853d8");
        assert!(is_supported(&found));
        let debian = "Verilator 5.006 2023-01-22 rev (Debian 5.006-3)";
        assert_eq!(version(debian, config), debian);
        assert!(!is_supported(&version("no version", "")));
    }

    #[test]
    fn versions() {
        assert!(is_supported(
            "Verilator 5.006 2023-01-22 rev (Debian 5.006-3)"
        ));
        assert!(is_supported("Verilator 5.028 2024-08-21"));
        assert!(!is_supported(
            "Verilator 4.038 2020-07-11 rev v4.036-114-g0cd4a57ad"
        ));
        assert!(!is_supported("Verilator 5.004 2022-12-14"));
        assert!(!is_supported(""));
    }
}
