//! See [`ferroce_verbs_tools::pingpong`].

use std::io::stdout;
use std::process::ExitCode;

use ferroce_verbs_tools::{pingpong, program};

fn main() -> ExitCode {
    program::main(|args: pingpong::Args| {
        let mut device = args.device.open()?;
        pingpong::run(&mut device, &args, &mut stdout())
    })
}
