//! The demo over the golden model: the run itself, and the command.

mod command;
mod run;
