//! What the bus makes of an access.

use std::rc::Rc;

use ferroce_sim::axi::{Config, OKAY};
use ferroce_sim::memory::{Fault, FaultKind, HostMemory, Ranges, Trouble};

use crate::master::Master;
use crate::{BASE, contents, host};

/// Memory of which every access is in trouble.
struct Troubled(Rc<Ranges>, Trouble);

impl HostMemory for Troubled {
    fn read(&self, addr: u64, data: &mut [u8]) -> Result<(), Fault> {
        self.0.read(addr, data)
    }

    fn write(&self, addr: u64, data: &[u8]) -> Result<(), Fault> {
        self.0.write(addr, data)
    }

    fn mapped(&self, addr: u64, len: usize) -> usize {
        self.0.mapped(addr, len)
    }

    fn trouble(&self, _addr: u64, _kind: FaultKind) -> Trouble {
        self.1
    }

    fn faults(&self) -> Vec<Fault> {
        self.0.faults()
    }
}

#[test]
fn trouble_is_what_the_bus_makes_of_an_access() {
    const SLVERR: u8 = 2;
    let refused = |ones| Trouble::Refused {
        beat: 5,
        response: SLVERR,
        ones,
    };
    // a write of two beats, then a read of four: xRESP of the write, of each beat, whether it was written, the refused beat
    let cases = [
        (Trouble::None, OKAY, [OKAY; 4], true, 0x11),
        (refused(false), SLVERR, [OKAY, SLVERR, OKAY, OKAY], false, 0),
        (
            refused(true),
            SLVERR,
            [OKAY, SLVERR, OKAY, OKAY],
            false,
            0xff,
        ),
        (Trouble::Vanishes, OKAY, [OKAY; 4], false, 0),
        (Trouble::Late(500), OKAY, [OKAY; 4], true, 0x11),
    ];
    let mut on_time = 0;
    for (trouble, written, read, is_there, byte) in cases {
        let memory = host();
        let troubled = Rc::new(Troubled(memory.clone(), trouble));
        let mut master = Master::new(troubled, 64, &Config::default());
        master.write(1, BASE, &[0x11; 128], |_| true);
        master.finish();
        let b = master.responses[0];
        assert_eq!(b.2, written, "{trouble:?}");
        assert_eq!(contents(&memory)[127] == 0x11, is_there, "{trouble:?}");
        let asked = master.now;
        master.read(1, BASE, 4);
        master.finish();
        let resps: Vec<u8> = master.beats.iter().map(|beat| beat.2).collect();
        assert_eq!(resps, read, "{trouble:?}");
        assert_eq!(master.beats[1].4, [byte; 64], "{trouble:?}");
        let took = [b.0, master.beats[0].0 - asked];
        match trouble {
            Trouble::None => on_time = took[0].max(took[1]),
            Trouble::Late(_) => assert!(took[0].min(took[1]) >= 500, "{took:?}"),
            _ => assert!(took[0].max(took[1]) <= on_time, "{trouble:?}: {took:?}"),
        }
    }
}
