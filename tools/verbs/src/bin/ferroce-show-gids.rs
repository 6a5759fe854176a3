//! See [`ferroce_verbs_tools::gids`].

use std::io::stdout;
use std::process::ExitCode;

use ferroce_verbs_tools::{gids, program};

fn main() -> ExitCode {
    program::main(|args: gids::Args| {
        let device = args.device.open()?;
        gids::run(&device, &args, &mut stdout())
    })
}
