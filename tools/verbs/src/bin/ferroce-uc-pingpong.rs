//! See [`ferroce_verbs_tools::pingpong`].

use std::process::ExitCode;

use ferroce_verbs_tools::{pingpong, program};

fn main() -> ExitCode {
    program::main(pingpong::main::<pingpong::UcArgs>)
}
