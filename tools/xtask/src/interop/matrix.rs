//! The cells: which program, which side of it is ours, on what, over what.

use std::fmt;

use crate::dut::Dut;

/// A program that both sides run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub name: &'static str,
    pub family: Family,
    /// What is lost is sent again.
    pub is_reliable: bool,
}

/// How a program is called, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// Examples of libibverbs.
    PingPong,
    /// perftest; whether the server shows results too.
    Perftest { both_show: bool },
    /// That of the project, `mixed.c`: operations of all kinds under way on one queue pair.
    Mixed,
    /// Of librdmacm: sides find each other by the address of the card, and agree by messages of connection managers.
    Rping,
}

const fn pingpong(name: &'static str, is_reliable: bool) -> Program {
    Program {
        name,
        family: Family::PingPong,
        is_reliable,
    }
}

const fn perftest(name: &'static str, both_show: bool) -> Program {
    Program {
        name,
        family: Family::Perftest { both_show },
        is_reliable: true,
    }
}

/// All programs.
pub(super) static PROGRAMS: [Program; 14] = [
    pingpong("ibv_rc_pingpong", true),
    pingpong("ibv_uc_pingpong", false),
    pingpong("ibv_ud_pingpong", false),
    pingpong("ibv_srq_pingpong", true),
    perftest("ib_send_bw", true),
    perftest("ib_send_lat", true),
    perftest("ib_write_bw", true),
    perftest("ib_write_lat", true),
    perftest("ib_read_bw", true),
    perftest("ib_read_lat", false),
    perftest("ib_atomic_bw", true),
    perftest("ib_atomic_lat", false),
    Program {
        name: "rping",
        family: Family::Rping,
        is_reliable: true,
    },
    Program {
        name: "mixed",
        family: Family::Mixed,
        is_reliable: true,
    },
];

/// What is asked for and cannot be, with the reason.
pub(super) const NOT_POSSIBLE: [(&str, &str); 1] = [(
    "ibv_uc_pingpong and ibv_ud_pingpong with loss",
    "each side waits for the message of the other. Unreliable transports do not repeat a lost one: the \
     program waits without end, as it should",
)];

/// Our side of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// What carries RoCEv2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ip {
    V4,
    V6,
}

/// Path MTUs in bytes.
pub(super) const MTUS: [u32; 2] = [1024, 4096];

/// One run of a program on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub program: &'static Program,
    pub side: Side,
    pub card: Dut,
    pub ip: Ip,
    /// Path MTU in bytes.
    pub mtu: u32,
    /// Frames are lost, each way.
    pub loss: bool,
}

impl Cell {
    /// Share of the frames that are lost.
    pub(super) fn lost(&self) -> &'static str {
        match (self.loss, self.program.family) {
            (false, _) => "0",
            // The last answers of a wave, which no later one stands for, are lost some times.
            (true, Family::Mixed) => "5%",
            (true, _) => "1%",
        }
    }
}

impl fmt::Display for Cell {
    /// Its name, which is one of a folder too.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Client => "client",
            Side::Server => "server",
        };
        let ip = match self.ip {
            Ip::V4 => "ipv4",
            Ip::V6 => "ipv6",
        };
        let loss = if self.loss { "loss" } else { "clean" };
        let (program, card, mtu) = (self.program.name, self.card.name(), self.mtu);
        write!(f, "{program}-{side}-{card}-{ip}-{mtu}-{loss}")
    }
}

/// The whole matrix; what the peer is set up for changes least often.
pub(super) fn all() -> Vec<Cell> {
    let mut cells = vec![];
    for card in [Dut::Rtl512, Dut::Model] {
        for loss in [false, true] {
            for mtu in MTUS {
                for program in PROGRAMS.iter().filter(|p| p.is_reliable || !loss) {
                    for side in [Side::Client, Side::Server] {
                        for ip in [Ip::V4, Ip::V6] {
                            cells.push(Cell {
                                program,
                                side,
                                card,
                                ip,
                                mtu,
                                loss,
                            });
                        }
                    }
                }
            }
        }
    }
    cells
}

/// What the quick form runs of the matrix: each program, both sides, IP versions and MTUs, and loss.
pub(super) fn quick() -> Vec<Cell> {
    use Ip::{V4, V6};
    use Side::{Client, Server};
    let chosen = [
        (0, Client, V4, 1024, false),
        (1, Server, V6, 1024, false),
        (4, Server, V4, 1024, false),
        (7, Client, V6, 1024, false),
        (8, Server, V6, 1024, false),
        (11, Client, V4, 1024, false),
        (2, Client, V4, 4096, false),
        (3, Server, V6, 4096, false),
        (5, Client, V6, 4096, false),
        (6, Server, V4, 4096, false),
        (9, Client, V4, 4096, false),
        (10, Server, V6, 4096, false),
        (12, Client, V4, 1024, false),
        (12, Server, V6, 4096, false),
        (0, Server, V6, 1024, true),
        (6, Client, V4, 1024, true),
        (13, Client, V6, 4096, true),
        (13, Server, V4, 1024, true),
    ];
    let cell = |(program, side, ip, mtu, loss): (usize, _, _, _, _)| Cell {
        program: &PROGRAMS[program],
        side,
        card: Dut::Rtl512,
        ip,
        mtu,
        loss,
    };
    chosen.map(cell).to_vec()
}

/// The cells of `cells` whose name contains each of `parts`.
pub(super) fn named(mut cells: Vec<Cell>, parts: &[String]) -> Vec<Cell> {
    cells.retain(|cell| {
        let name = cell.to_string();
        parts.iter().all(|part| name.contains(part.as_str()))
    });
    cells
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(cells: &[Cell]) -> BTreeSet<String> {
        cells.iter().map(Cell::to_string).collect()
    }

    #[test]
    fn the_matrix_is_whole() {
        let cells = all();
        // Sides, cards, IP versions and MTUs; twice what is reliable.
        assert_eq!(cells.len(), 16 * (2 + 2 * 12));
        assert_eq!(names(&cells).len(), cells.len(), "names are unique");
        let lossy = |c: &&Cell| c.loss && !c.program.is_reliable;
        assert_eq!(cells.iter().filter(lossy).count(), 0);
    }

    #[test]
    fn the_quick_form_has_all_that_is_promised() {
        let cells = quick();
        assert!(cells.len() >= 12);
        assert!(names(&cells).is_subset(&names(&all())));
        assert_eq!(names(&cells).len(), cells.len());
        let has = |what: &str, is: &dyn Fn(&Cell) -> bool| {
            assert!(cells.iter().any(is), "{what}");
        };
        for program in &PROGRAMS {
            has(program.name, &|c| c.program == program);
        }
        for side in [Side::Client, Side::Server] {
            has("side", &|c| c.side == side);
            has("side with loss", &|c| c.side == side && c.loss);
        }
        for ip in [Ip::V4, Ip::V6] {
            has("IP", &|c| c.ip == ip && c.mtu == 1024);
            has("IP", &|c| c.ip == ip && c.mtu == 4096);
        }
        assert!(cells.iter().all(|c| c.card == Dut::Rtl512));
    }

    #[test]
    fn cells_are_chosen_by_parts_of_their_names() {
        let chosen = |parts: &[&str]| {
            let parts: Vec<_> = parts.iter().map(|&p| p.to_owned()).collect();
            named(all(), &parts).len()
        };
        assert_eq!(chosen(&[]), all().len());
        assert_eq!(chosen(&["ibv_rc", "model", "ipv6", "clean"]), 4);
        assert_eq!(chosen(&["ib_atomic", "server", "rtl512"]), 16);
        assert_eq!(chosen(&["rping", "ipv4", "loss"]), 8);
        assert_eq!(chosen(&["ucmatose"]), 0);
    }
}
