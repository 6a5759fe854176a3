//! The shared libraries: that of connections, and that of verbs beside it.

use std::path::Path;
use std::sync::LazyLock;

use ferroce_system::link;
use tempfile::TempDir;

/// The folder of both, which are linked once a run.
pub(crate) fn folder() -> &'static Path {
    static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let verbs = link::archive("ferroce_ibverbs").unwrap();
        let script = ferroce_ibverbs::version_script();
        link::shared(&verbs, &script, ferroce_ibverbs::SONAME, folder.path()).unwrap();
        let own = link::archive("ferroce_rdmacm").unwrap();
        let script = ferroce_rdmacm::version_script();
        let (soname, others) = (ferroce_rdmacm::SONAME, [ferroce_ibverbs::SONAME]);
        link::shared_with(&own, &script, soname, folder.path(), &others).unwrap();
        folder
    });
    FOLDER.path()
}
