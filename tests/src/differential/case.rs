//! A scenario that was made smaller, as a file that replays it.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Pairing;
use super::generate::{self, Class};
use super::scenario::Scenario;
use super::shrink::Selection;

/// What a file holds: where the scenario came from and what of it is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Name of the campaign.
    pub campaign: String,
    /// Seed of the scenario.
    pub seed: u64,
    /// Wire of the scenario.
    pub class: Class,
    /// Features it was made for.
    pub features: u32,
    /// Where the implementation under test is.
    pub pairing: Pairing,
    /// Steps and connections left.
    pub left: Selection,
}

impl Case {
    /// The scenario.
    #[must_use]
    pub fn scenario(&self) -> Scenario {
        let whole = generate::scenario(self.seed, self.class, self.features);
        self.left.of(&whole)
    }

    /// Writes the case into a folder, which is made if there is none.
    ///
    /// # Errors
    /// What the file system says.
    pub fn save(&self, folder: &Path) -> std::io::Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let name = self.campaign.replace(|c: char| !c.is_alphanumeric(), "-");
        let path = folder.join(format!("{name}-{}.json", self.seed));
        fs::write(&path, serde_json::to_string_pretty(self)?)?;
        Ok(path)
    }

    /// Reads a case.
    ///
    /// # Errors
    /// No such file, or it holds no case.
    pub fn load(path: &Path) -> std::io::Result<Self> {
        Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
    }
}

#[cfg(test)]
mod tests {
    use ferroce_proto::abi::regs::feature;

    use super::*;

    #[test]
    fn a_case_comes_back_from_its_file() {
        let (class, features) = (Class::Lossy, feature::RC | feature::READ);
        let whole = generate::scenario(7, class, features);
        let left = Selection {
            steps: (1..whole.steps.len()).step_by(2).collect(),
            connections: (1..whole.connections.len()).collect(),
        };
        let case = Case {
            campaign: "Lossy, 512 bits".into(),
            seed: 7,
            class,
            features,
            pairing: Pairing::SideA,
            left: left.clone(),
        };
        let folder = std::env::temp_dir().join(format!("ferroce-case-{}", std::process::id()));
        let path = case.save(&folder).unwrap();
        assert_eq!(path.file_name().unwrap(), "Lossy--512-bits-7.json");
        let found = Case::load(&path).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, case);
        assert_eq!(found.scenario().to_string(), left.of(&whole).to_string());
        let all = Selection::all(&whole).of(&whole);
        assert_eq!(all.to_string(), whole.to_string());
        assert!(Case::load(&path).is_err(), "it is gone");
    }
}
