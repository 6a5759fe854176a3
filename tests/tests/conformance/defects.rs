//! Cards with a defect must fail the case of the rule they break.

use ferroce_hdl::engine::builds::STANDARD;
use ferroce_proto::wire::{Headers, NakCode, Packet, Syndrome, icrc};
use ferroce_sim::model::{FEATURES, Model};
use ferroce_sim::nic::Nic;
use ferroce_tests::conformance::all;
use ferroce_tests::conformance::run::{Outcome, run};
use ferroce_tests::differential::Card;

/// What a defect makes of a frame; `None` loses it.
type Defect = fn(Vec<u8>) -> Option<Vec<u8>>;

/// A golden model whose port has a defect in each direction.
struct Defective {
    model: Model,
    receives: Defect,
    sends: Defect,
}

impl Nic for Defective {
    fn write32(&mut self, offset: u64, value: u32) {
        self.model.write32(offset, value);
    }
    fn start_read32(&mut self, offset: u64) {
        self.model.start_read32(offset);
    }
    fn take_read32(&mut self) -> Option<u32> {
        self.model.take_read32()
    }
    fn step(&mut self) {
        self.model.step();
    }
    fn now(&self) -> u64 {
        self.model.now()
    }
    fn receive(&mut self, frame: &[u8]) {
        if let Some(frame) = (self.receives)(frame.to_vec()) {
            self.model.receive(&frame);
        }
    }
    fn transmit(&mut self) -> Option<Vec<u8>> {
        loop {
            let frame = (self.sends)(self.model.transmit()?);
            if frame.is_some() {
                return frame;
            }
        }
    }
    fn interrupt(&mut self) -> Option<u16> {
        self.model.interrupt()
    }
    fn failures(&self) -> Vec<String> {
        self.model.failures()
    }
    fn reset(&mut self) {
        self.model.reset();
    }
    fn idle_until(&self) -> Option<u64> {
        self.model.idle_until()
    }
    fn run_until(&mut self, cycle: u64) {
        self.model.run_until(cycle);
    }
}

fn sound(frame: Vec<u8>) -> Option<Vec<u8>> {
    Some(frame)
}

/// A frame with other headers; one that does not parse stays as it is.
fn with(frame: Vec<u8>, change: impl FnOnce(&mut Headers)) -> Vec<u8> {
    let Ok(packet) = Packet::parse(&frame) else {
        return frame;
    };
    let (mut headers, payload) = (packet.headers, frame[packet.payload].to_vec());
    change(&mut headers);
    let mut changed = vec![0; headers.frame_len(payload.len())];
    headers
        .build(&payload, &mut changed)
        .expect("still a packet");
    changed
}

#[track_caller]
fn must_fail(name: &str, receives: Defect, sends: Defect) {
    let card = Card::new("defective", move |memory, _| {
        Box::new(Defective {
            model: Model::new(STANDARD, memory),
            receives,
            sends,
        })
    });
    let case = all().find(|case| case.name == name);
    let case = case.unwrap_or_else(|| panic!("no case is called {name}"));
    let outcome = run(case, &card, FEATURES);
    assert!(matches!(outcome, Outcome::Failed(_)), "{name}: {outcome:?}");
}

#[test]
fn a_wrong_msn() {
    let sends: Defect = |frame| {
        Some(with(frame, |h| {
            if let Some(aeth) = &mut h.ext.aeth {
                aeth.msn += 1;
            }
        }))
    };
    for name in [
        "ack_psn_and_msn",
        "gap_draws_nak",
        "rnr_without_a_wqe",
        "read_responses",
    ] {
        must_fail(name, sound, sends);
    }
}

#[test]
fn credits_where_there_are_none() {
    must_fail("ack_without_credits", sound, |frame| {
        Some(with(frame, |h| {
            if let Some(aeth) = &mut h.ext.aeth
                && aeth.syndrome == Syndrome::ACK
            {
                aeth.syndrome = Syndrome::Ack { credits: 0 };
            }
        }))
    });
}

#[test]
fn no_nak_for_a_gap() {
    let sends: Defect = |frame| {
        let packet = Packet::parse(&frame).expect("of the model");
        let syndrome = packet.headers.ext.aeth.map(|aeth| aeth.syndrome);
        (syndrome != Some(Syndrome::Nak(NakCode::PsnSequence))).then_some(frame)
    };
    for name in ["gap_draws_nak", "gap_after_gap", "gap_farthest"] {
        must_fail(name, sound, sends);
    }
}

#[test]
fn solicited_in_every_packet() {
    must_fail("send_solicited", sound, |frame| {
        Some(with(frame, |h| h.bth.solicited = true))
    });
}

#[test]
fn acknowledgements_are_not_asked_for() {
    // Whatever the requester wants, AckReq does not leave the port.
    must_fail("ack_req_in_the_last_packet", sound, |frame| {
        Some(with(frame, |h| h.bth.ack_req = false))
    });
}

#[test]
fn any_icrc_is_good() {
    let receives: Defect = |mut frame| {
        let _ = frame.get_mut(14..).map(icrc::seal);
        Some(frame)
    };
    for name in ["icrc_bad", "icrc_covers_every_byte"] {
        must_fail(name, receives, sound);
    }
}

#[test]
fn any_partition_is_ours() {
    let receives: Defect = |frame| Some(with(frame, |h| h.bth.pkey = 0xffff));
    for name in [
        "pkey_of_another_partition",
        "response_of_wrong_pkey",
        "ud_pkey",
    ] {
        must_fail(name, receives, sound);
    }
}

#[test]
fn addresses_past_the_region() {
    // A WRITE a byte in front of a region is taken for one at its start.
    must_fail(
        "write_before_the_region",
        |frame| {
            Some(with(frame, |h| {
                if let Some(reth) = &mut h.ext.reth {
                    reth.va = reth.va.next_multiple_of(64);
                }
            }))
        },
        sound,
    );
}
