//! The C++ files of a model, as Verilator lists them in `Vmodel_classes.mk`.

use std::fs;
use std::path::Path;

use super::Error;

/// Files of the model, gathered in listed order into units of at least `bytes` (the last one may be
/// smaller), the shim among them.
pub(super) fn units(makefile: &str, dir: &Path, bytes: u64) -> Result<Vec<Vec<String>>, Error> {
    let mut units = Vec::new();
    let mut unit = vec!["shim.cpp".to_owned()];
    let mut size = 0;
    for file in listed(makefile, &["VM_CLASSES_", "VM_SUPPORT_"]) {
        let path = dir.join(&file);
        size += fs::metadata(&path).map_err(Error::io("read", &path))?.len();
        unit.push(file);
        if size >= bytes {
            units.push(std::mem::take(&mut unit));
            size = 0;
        }
    }
    if !unit.is_empty() {
        units.push(unit);
    }
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
        let file = line.strip_prefix('\t')?.trim_end_matches('\\').trim();
        (wanted && !file.is_empty()).then(|| format!("{file}.cpp"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAKEFILE: &str = "VM_TRACE = 0\nVM_CLASSES_FAST += \\\n\tVmodel \\\n\tVmodel_a \\\n\n\
                            VM_SUPPORT_SLOW += \\\n\tVmodel__Syms \\\n\n\
                            VM_GLOBAL_FAST += \\\n\tverilated \\\n\tverilated_threads \\\n\n";

    #[test]
    fn lists_are_told_apart() {
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
        let split = units(MAKEFILE, dir.path(), 100).unwrap();
        assert_eq!(
            split,
            [
                vec!["shim.cpp", "Vmodel.cpp", "Vmodel_a.cpp"],
                vec!["Vmodel__Syms.cpp"]
            ]
        );
        assert_eq!(units(MAKEFILE, dir.path(), 1000).unwrap().concat().len(), 4);
    }
}
