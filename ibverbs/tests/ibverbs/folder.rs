//! The shared library.

use std::path::Path;
use std::sync::LazyLock;

use ferroce_ibverbs::{SONAME, version_script};
use ferroce_system::link;
use tempfile::TempDir;

/// The folder of the shared library, which is linked once a run.
pub(crate) fn folder() -> &'static Path {
    static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let archive = link::archive("ferroce_ibverbs").unwrap();
        link::shared(&archive, &version_script(), SONAME, folder.path()).unwrap();
        folder
    });
    FOLDER.path()
}
