//! The C++ files of a model, as Verilator lists them in `Vmodel_classes.mk`.

use std::fs;
use std::mem;
use std::path::Path;

use super::Error;

/// Keeps GCC from spending as much on code that runs once as on code that runs every cycle.
const SLOW: &str = "#pragma GCC optimize(\"O0\")\n";

/// Texts of the units to compile: includes of the shim and of every file of the model. A unit is
/// full when it holds `bytes` or more. What runs every cycle comes first, then what runs once.
pub(super) fn units(makefile: &str, dir: &Path, bytes: u64) -> Result<Vec<String>, Error> {
    let fast = listed(makefile, &["VM_CLASSES_FAST", "VM_SUPPORT_FAST"]);
    let slow = listed(makefile, &["VM_CLASSES_SLOW", "VM_SUPPORT_SLOW"]);
    let files = fast.map(|f| (f, false)).chain(slow.map(|f| (f, true)));

    let mut units = Vec::new();
    let mut unit = String::from("#include \"shim.cpp\"\n");
    let (mut size, mut was_slow) = (0, false);
    for (file, is_slow) in files {
        if size >= bytes {
            units.push(mem::take(&mut unit));
            (size, was_slow) = (0, false);
        }
        if is_slow && !was_slow {
            unit += SLOW;
        }
        was_slow = is_slow;
        unit += &format!("#include \"{file}\"\n");
        let path = dir.join(file);
        size += fs::metadata(&path).map_err(Error::io("read", &path))?.len();
    }
    units.push(unit);
    Ok(units)
}

/// Files of Verilator's run-time library that the model needs.
pub(super) fn library(makefile: &str) -> Vec<String> {
    listed(makefile, &["VM_GLOBAL_"]).collect()
}

/// Files in the lists whose names start with one of `lists`.
fn listed(makefile: &str, lists: &'static [&str]) -> impl Iterator<Item = String> {
    let mut wanted = false;
    makefile.lines().filter_map(move |line| {
        if let Some((list, _)) = line.split_once("+=") {
            wanted = lists.iter().any(|prefix| list.starts_with(prefix));
            return None;
        }
        // A tab in releases such as 5.006, spaces in such as 5.048.
        let file = line
            .strip_prefix(['\t', ' '])?
            .trim_end_matches('\\')
            .trim();
        (wanted && !file.is_empty()).then(|| format!("{file}.cpp"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAKEFILE: &str = "VM_TRACE = 0\nVM_CLASSES_FAST += \\\n\tVmodel \\\n  Vmodel_a \\\n\n\
                            VM_SUPPORT_SLOW += \\\n\tVmodel__Syms \\\n\n\
                            VM_GLOBAL_FAST += \\\n\tverilated \\\n\tverilated_threads \\\n\n";

    #[test]
    fn lists_differ() {
        assert_eq!(
            library(MAKEFILE),
            ["verilated.cpp", "verilated_threads.cpp"]
        );
    }

    #[test]
    fn units_hold_every_file_once() {
        let dir = tempfile::tempdir().unwrap();
        for (file, size) in [
            ("Vmodel.cpp", 10),
            ("Vmodel_a.cpp", 90),
            ("Vmodel__Syms.cpp", 5),
        ] {
            fs::write(dir.path().join(file), vec![b' '; size]).unwrap();
        }
        let shim = "#include \"shim.cpp\"\n#include \"Vmodel.cpp\"\n";
        let rest = "#include \"Vmodel_a.cpp\"\n";
        let slow = format!("{SLOW}#include \"Vmodel__Syms.cpp\"\n");
        let split = |bytes| units(MAKEFILE, dir.path(), bytes).unwrap();
        assert_eq!(split(1000), [format!("{shim}{rest}{slow}")]);
        assert_eq!(split(100), [format!("{shim}{rest}"), slow.clone()]);
        assert_eq!(split(10), [shim.into(), rest.into(), slow]);
    }
}
