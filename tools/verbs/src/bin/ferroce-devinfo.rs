//! See [`ferroce_verbs_tools::devinfo`].

use std::io::stdout;
use std::process::ExitCode;

use ferroce_verbs_tools::{devinfo, program};

fn main() -> ExitCode {
    program::main(|args: devinfo::Args| {
        let device = args.device.open()?;
        devinfo::run(&device, &args, &mut stdout())
    })
}
