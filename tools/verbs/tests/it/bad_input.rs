//! Bad input to the binaries: one line that says what, exit status 2; and a card that cannot be used, exit status 1.

use std::process::{Command, Output};

const PROGRAMS: [&str; 7] = [
    env!("CARGO_BIN_EXE_ferroce-devinfo"),
    env!("CARGO_BIN_EXE_ferroce-show-gids"),
    env!("CARGO_BIN_EXE_ferroce-rc-pingpong"),
    env!("CARGO_BIN_EXE_ferroce-perf"),
    env!("CARGO_BIN_EXE_ferroce-stats"),
    env!("CARGO_BIN_EXE_ferroce-uc-pingpong"),
    env!("CARGO_BIN_EXE_ferroce-ud-pingpong"),
];

fn run(program: &str, options: &[&str]) -> Output {
    // What to measure is not an option of the others.
    let test: &[&str] = if program.ends_with("perf") {
        &["write_bw"]
    } else {
        &[]
    };
    let mut command = Command::new(program);
    command
        .args(test)
        .args(options)
        .env_remove("FERROCE_DEVICE");
    command.output().unwrap()
}

fn refused(program: &str, options: &[&str], status: i32, expected: &str) {
    let ended = run(program, options);
    let text = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(
        ended.status.code(),
        Some(status),
        "{program} {options:?}: {text}"
    );
    assert_eq!(text.lines().count(), 1, "{program} {options:?}: {text}");
    let name = program.rsplit('/').next().unwrap();
    assert!(text.starts_with(&format!("{name}: ")), "{text}");
    assert!(text.contains(expected), "{program} {options:?}: {text}");
    assert!(ended.stdout.is_empty(), "{program} {options:?}");
}

#[test]
fn of_every_program() {
    for program in PROGRAMS {
        refused(program, &[], 2, "name one by -d or in $FERROCE_DEVICE");
        refused(
            program,
            &["-d", "mlx5_0"],
            2,
            "unknown device `mlx5_0`: expected the PCI address",
        );
        refused(
            program,
            &["-d", "unix:/x", "-i", "2"],
            2,
            "the card has port 1 only",
        );
        refused(
            program,
            &["--nonsense"],
            2,
            "unexpected argument '--nonsense'",
        );
        refused(
            program,
            &["-d"],
            2,
            "a value is required for '--ib-dev <CARD>'",
        );
        refused(program, &["--ip", "10.0.0"], 2, "invalid IP address");
        refused(
            program,
            &["--mac", "ff:ff:ff:ff:ff:ff"],
            2,
            "expected the address of one station",
        );
        refused(
            program,
            &["-d", "unix:/nonexistent/card"],
            1,
            "cannot connect to /nonexistent/card: start the card first",
        );
        let help = run(program, &["--help"]);
        assert!(help.status.success() && !help.stdout.is_empty());
    }
}

#[test]
fn of_some() {
    let [_, _, pingpong, perf, stats, _, datagrams] = PROGRAMS;
    refused(
        pingpong,
        &["-m", "1500"],
        2,
        "possible are 256, 512, 1024, 2048 and 4096",
    );
    refused(pingpong, &["-s", "-1"], 2, "-1");
    refused(pingpong, &["-p", "65536"], 2, "65536");
    refused(pingpong, &["-l", "8"], 2, "8 is not in 0..=7");
    let text = "completions of the card carry no time: leave out -t";
    refused(pingpong, &["-t"], 2, text);
    refused(datagrams, &["-m", "1024"], 2, "unexpected argument '-m'");
    refused(perf, &["-c", "XRC"], 2, "XRC");
    refused(perf, &["-s", "64", "-a"], 2, "cannot be used with '--all'");
    refused(perf, &["-D", "1", "-a"], 2, "cannot be used with '--all'");
    refused(
        perf,
        &["-n", "9", "-D", "1"],
        2,
        "cannot be used with '--duration",
    );
    refused(perf, &["-S", "8"], 2, "8 is not in 0..=7");
    refused(stats, &["-c", "3"], 2, "--interval");
    refused(
        stats,
        &["--peek", "-d", "unix:/x"],
        2,
        "no registers to peek at",
    );
    refused(
        stats,
        &["--peek", "-d", "ffff:ff:1f.7"],
        1,
        "check the PCI address by lspci",
    );
}
