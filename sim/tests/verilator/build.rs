//! Builds: the cache, and the errors when something is missing or wrong.

use std::fs;
use std::path::{Path, PathBuf};

use ferroce_sim::verilator::{self, Error, Options, Port, Spec};

use super::{build, counter};

/// Options with a cache of `test`'s own, without models but with Verilator's run-time library of an
/// earlier run.
fn own_cache(test: &str) -> (Options, PathBuf) {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    for entry in fs::read_dir(&cache).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.join("model.so").exists() {
            fs::remove_dir_all(path).unwrap();
        }
    }
    let options = Options {
        cache: Some(cache.clone()),
        ..Options::default()
    };
    (options, cache)
}

#[test]
fn second_build_comes_from_the_cache() {
    let (options, cache) = own_cache("second_build");
    let first = verilator::build(&counter(), &options).unwrap();
    assert!(first.compiled() > 0);
    let second = verilator::build(&counter(), &options).unwrap();
    assert_eq!(second.compiled(), 0);
    let mut changed = counter();
    changed.source = changed.source.replace("32'd1", "32'd2");
    let third = verilator::build(&changed, &options).unwrap();
    assert!(third.compiled() > 0);
    let mut dut = third.instance().unwrap();
    dut.ticks(4);
    assert_eq!(dut.get(third.output("count").unwrap()), 8);
    assert!(leftovers(&cache).is_empty());
}

#[test]
fn racing_builds_build_once() {
    let (options, _) = own_cache("racing_builds");
    let build = || verilator::build(&counter(), &options).unwrap().compiled() > 0;
    let compiled = std::thread::scope(|scope| {
        let builds = [(); 4].map(|()| scope.spawn(build));
        builds.map(|build| build.join().unwrap())
    });
    assert_eq!(compiled.into_iter().filter(|compiled| *compiled).count(), 1);
}

#[test]
fn missing_tools_are_named_with_their_package() {
    let nowhere = || Some(PathBuf::from("/nonexistent/tool"));
    let verilator = Options {
        verilator: nowhere(),
        ..Options::default()
    };
    let error = verilator::build(&counter(), &verilator)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/nonexistent/tool") && error.contains("apt install verilator"),
        "{error}"
    );
    let cxx = Options {
        cxx: nowhere(),
        ..Options::default()
    };
    let error = verilator::build(&counter(), &cxx).unwrap_err().to_string();
    assert!(
        error.contains("/nonexistent/tool") && error.contains("apt install g++"),
        "{error}"
    );
}

/// A stand-in for a tool, beside this file.
fn stand_in(name: &str) -> Option<PathBuf> {
    Some(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/verilator/tools")
            .join(name),
    )
}

/// What a build left in its cache beside finished entries.
fn leftovers(cache: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(cache).unwrap().map(|e| e.unwrap().path());
    entries
        .filter(|p| p.is_dir() && !p.join("model.so").exists() && !p.join("runtime.h").exists())
        .collect()
}

#[test]
fn old_verilator_is_refused() {
    let options = Options {
        verilator: stand_in("old-verilator"),
        ..Options::default()
    };
    let error = verilator::build(&counter(), &options).unwrap_err();
    assert!(matches!(error, Error::Version { .. }));
    assert!(
        error.to_string().contains("4.038") && error.to_string().contains("5.006"),
        "{error}"
    );
}

#[test]
fn failing_compiler_leaves_no_entry() {
    let cache = tempfile::tempdir().unwrap();
    let options = Options {
        cxx: stand_in("full-disk-g++"),
        cache: Some(cache.path().into()),
        ..Options::default()
    };
    let error = verilator::build(&counter(), &options).unwrap_err();
    assert!(matches!(error, Error::Compile { .. }));
    assert!(error.to_string().contains("No space left"), "{error}");
    assert!(leftovers(cache.path()).is_empty());
}

#[test]
fn missing_zlib_is_named_with_its_package() {
    let cache = tempfile::tempdir().unwrap();
    let options = Options {
        trace: true,
        cxx: stand_in("no-zlib-g++"),
        cache: Some(cache.path().into()),
        ..Options::default()
    };
    let error = verilator::build(&counter(), &options).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("apt install zlib1g-dev"), "{text}");
    assert!(leftovers(cache.path()).is_empty());
}

#[test]
fn rejected_verilog_is_shown_with_its_line() {
    let cache = tempfile::tempdir().unwrap();
    let options = Options {
        cache: Some(cache.path().into()),
        ..Options::default()
    };
    let mut spec = counter();
    spec.source = spec.source.replace("count + 32'd1", "cuont + 32'd1");
    let error = verilator::build(&spec, &options).unwrap_err();
    assert!(matches!(error, Error::Verilate { .. }));
    assert!(
        error.to_string().contains("source.v:6") && error.to_string().contains("cuont"),
        "{error}"
    );
    assert!(leftovers(cache.path()).is_empty());
}

#[test]
fn port_list_must_be_the_modules() {
    type Change = fn(&mut Spec);
    let cases: [(Change, &str); 7] = [
        (
            |s| s.ports[2].width = 16,
            "`count` is listed as output of 16 bits and is an output of 32 bits",
        ),
        (
            |s| s.ports[1] = Port::output("rst", 1),
            "`rst` is listed as output",
        ),
        (|s| s.ports.push(Port::input("enable", 1)), "no such port"),
        (
            |s| s.ports.push(Port::input("rst", 1)),
            "`rst` is listed twice",
        ),
        (
            |s| drop(s.ports.pop()),
            "output `never_set` of 64 bits is not listed",
        ),
        (
            |s| s.clock = Some("clock".into()),
            "clock `clock` is not a 1-bit input",
        ),
        (
            |s| s.ports[2] = Port::output("count", 32).field("top", 30, 3),
            "`count.top`",
        ),
    ];
    for (change, message) in cases {
        let mut spec = counter();
        change(&mut spec);
        let error = verilator::build(&spec, &Options::default()).unwrap_err();
        assert!(matches!(error, Error::PortMismatch { .. }));
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn unknown_names_bring_near_ones() {
    let model = build(&counter());
    let error = model.output("cuont").unwrap_err().to_string();
    assert!(
        error.contains("no output `cuont`") && error.contains("nearest names: count"),
        "{error}"
    );
    let error = model.input("count").unwrap_err().to_string();
    assert!(error.contains("is an output, not an input"), "{error}");
    assert!(model.signal("count").is_ok());
}
