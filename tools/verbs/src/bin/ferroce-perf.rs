//! See [`ferroce_verbs_tools::perf`].

use std::io::stdout;
use std::process::ExitCode;

use ferroce_verbs_tools::{perf, program};

fn main() -> ExitCode {
    program::main(|args: perf::Args| {
        let mut device = args.device.open()?;
        perf::run(&mut device, &args, &mut stdout())
    })
}
