//! The run: all cases of the suite, and scenarios of the differential test, on an engine with counters.

use std::error::Error;
use std::path::Path;
use std::{env, fs, process};

use ferroce_hdl::engine;
use ferroce_sim::rtl::build;
use ferroce_sim::verilator::{self, Model, Optimise};
use ferroce_system::pool;

use super::data::{self, Point};
use crate::conformance::run::{Outcome, run as case_on, world};
use crate::conformance::{Case, LONG_LIVES, all};
use crate::differential::generate::Class;
use crate::differential::{Card, Setup};
use crate::world::World;

/// Something that the engine does.
enum Job {
    Case(&'static Case),
    Scenario(u64, Class),
}

/// An engine with counters.
pub struct Engine {
    model: Model,
    width: usize,
}

impl Engine {
    /// The standard build with a data path of `width` bits; a build of its own in the cache, which takes some minutes.
    ///
    /// # Errors
    /// What Verilator or the compiler says.
    pub fn build(width: usize) -> Result<Self, build::BuildError> {
        let options = verilator::Options {
            coverage: true,
            optimise: Optimise::Fast,
            ..verilator::Options::default()
        };
        let model = build::model(width, &options)?;
        Ok(Self { model, width })
    }

    /// Its data path in bits.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Runs the cases of the suite, the long ones too, whose names contain `only`, and `scenarios` scenarios on each kind of wire, on all
    /// processors; `progress` hears of how many jobs are left. The counters, of all engines together.
    ///
    /// # Errors
    /// A test that fails, in words; counters that cannot be read.
    pub fn run(
        &self,
        only: &str,
        scenarios: u64,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<Point>, String> {
        // The longest first: what is left at the end is short.
        let cases = LONG_LIVES.iter().chain(all());
        let cases = cases.filter(|case| case.name.contains(only));
        let mut jobs: Vec<_> = cases.map(Job::Case).collect();
        for seed in 1..=scenarios {
            jobs.push(Job::Scenario(seed, Class::Lossless));
            jobs.push(Job::Scenario(seed, Class::Lossy));
        }
        let count = jobs.len();
        let jobs = (0..)
            .zip(jobs)
            .inspect(|(begun, _)| progress(count - begun));
        pool::try_each(pool::processors(), jobs, || |(_, job)| self.job(&job))?;
        progress(0);
        let text = self.written().map_err(|e| format!("the counters: {e}"))?;
        data::points(&text).map_err(|e| e.to_string())
    }

    /// The counters so far, as Verilator writes them to `path`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), verilator::Error> {
        self.model.write_coverage(path)
    }

    fn written(&self) -> Result<String, Box<dyn Error>> {
        let folder = env::temp_dir().join(format!("ferroce-coverage-{}", process::id()));
        fs::create_dir_all(&folder)?;
        let path = folder.join("coverage.dat");
        let written = self.write(&path);
        let text = written.map(|()| fs::read(&path));
        fs::remove_dir_all(&folder)?;
        Ok(String::from_utf8_lossy(&text??).into_owned())
    }

    fn job(&self, job: &Job) -> Result<(), String> {
        match *job {
            Job::Case(case) => match case_on(case, &self.card(), engine::FEATURES) {
                Outcome::Failed(text) => Err(format!("{}: {text}", case.name)),
                Outcome::Passed | Outcome::NotClaimed => Ok(()),
            },
            Job::Scenario(seed, class) => {
                Setup::engine(self.card_in_any_world()).meets(seed, class)
            }
        }
    }

    fn card(&self) -> Card {
        let model = self.model.clone();
        Card::new("engine", move |memory, _| {
            let engine = build::engine(&model, memory, &world(World::Fast, 1));
            Box::new(engine.expect("there is memory for an engine"))
        })
    }

    fn card_in_any_world(&self) -> Card {
        let model = self.model.clone();
        Card::new("engine", move |memory, seed| {
            let engine = build::engine(&model, memory, &World::of(seed).options(seed));
            Box::new(engine.expect("there is memory for an engine"))
        })
    }
}
