//! See [`ferroce_verbs_tools::stats`].

use std::io::stdout;
use std::process::ExitCode;

use ferroce_verbs_tools::{program, stats};

fn main() -> ExitCode {
    program::main(|args: stats::Args| {
        if args.peek {
            return stats::peek(&args, &mut stdout());
        }
        let mut device = args.device.open()?;
        stats::run(&mut device, &args, &mut stdout())
    })
}
