//! The demo: the run itself over golden model and RTL, and the command.

mod command;
mod rtl;
mod run;
