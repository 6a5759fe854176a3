//! Writes a build of the engine with tables of any size, one file a module, and prints name, block and sizes of each
//! module, children before parents. The sizes are constants of this program: `cargo xtask emit` compiles it with
//! `FERROCE_WIDTH`, `FERROCE_LOG_QP`, `FERROCE_LOG_MR`, `FERROCE_LOG_CQ` and `FERROCE_LOG_OUTSTANDING` set.
use std::path::PathBuf;
use std::process::ExitCode;

use ferroce_hdl::emit;
use ferroce_hdl::engine::builds::{self, STANDARD};

const WIDTH: usize = size(option_env!("FERROCE_WIDTH"), 512);
const Q: usize = size(option_env!("FERROCE_LOG_QP"), STANDARD.log_qp as usize);
const M: usize = size(option_env!("FERROCE_LOG_MR"), STANDARD.log_mr as usize);
const C: usize = size(option_env!("FERROCE_LOG_CQ"), STANDARD.log_cq as usize);
const O: usize = size(
    option_env!("FERROCE_LOG_OUTSTANDING"),
    STANDARD.log_outstanding as usize,
);

const fn size(text: Option<&str>, standard: usize) -> usize {
    let Some(text) = text else { return standard };
    match usize::from_str_radix(text, 10) {
        Ok(size) => size,
        Err(_) => panic!("no number"),
    }
}

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: emit_engine DIR");
        return ExitCode::from(2);
    };
    let design = emit::with_stack(|| match WIDTH {
        512 => builds::wide::<Q, M, C, O>(),
        64 => builds::narrow::<Q, M, C, O>(),
        _ => Err(format!(
            "data path of {WIDTH} bits: {:?} can be built",
            builds::WIDTHS
        )),
    });
    let written = design.and_then(|design| {
        design.write(&folder).map_err(|e| e.to_string())?;
        Ok(design)
    });
    match written {
        Ok(design) => {
            for module in design.modules {
                println!("{} {}", module.name, module.kind);
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
