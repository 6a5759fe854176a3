//! Merges the frames of the lanes, in turns: neither starves the other. Puts headers and payload of a beat together. What
//! comes by `first` goes before both.
//!
//! A lane that was granted keeps the grant to the end of its frame. A beat a cycle, no idle cycle between frames; no
//! register in the data path: the lanes end in registers, and what follows begins with one. Every byte is one of four:
//! of the headers or the payload of either lane, which is one LUT a bit; the frames of `first`, which are whole, are one more.
use crate::prelude::*;

/// Merge of two lanes of frames.
#[derive(Clone, Debug, Block)]
pub struct FrameMux<const W: usize, const K: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// Frames, by lane.
    pub s: [PartsIn<W, K>; 2],
    /// Frames that go first.
    pub first: FrameIn<W>,
    /// All frames.
    pub m: FrameOut<W>,
    arbiter: Arbiter<2>,
    choose: Chosen<W, K>,
    open: Reg<Bit>,
    owner: Reg<Bits<3>>,
}

impl<const W: usize, const K: usize> Logic for FrameMux<W, K> {
    describe!(
        "frame_mux",
        format!("w{W}"),
        "Merges the frames of the lanes, round robin."
    );

    #[kernel]
    fn update(&mut self) {
        let requests = bits::<2>(0)
            .replace_bit(0, s[0].valid)
            .replace_bit(1, s[1].valid);
        arbiter.request = requests;
        let mut grant = arbiter.grant.resize::<3>();
        if first.valid {
            grant = bits::<3>(4);
        }
        if open {
            grant = owner;
        }
        m.beat = s[0].beat;
        let mut last = s[0].beat.last;
        if grant.bit(1) {
            m.beat = s[1].beat;
            last = s[1].beat.last;
        }
        if grant.bit(2) {
            m.beat = first.beat;
            last = first.beat.last;
        }
        m.beat.response = grant.bit(1);
        choose.second = grant.bit(1);
        for i in 0..2 {
            choose.header[i] = s[i].header;
            choose.payload[i] = s[i].payload;
            choose.lanes[i] = s[i].lanes;
        }
        m.data = choose.data;
        if grant.bit(2) {
            m.data = first.data;
        }
        let offers = requests.resize::<3>().replace_bit(2, first.valid);
        m.valid = (grant & offers).any();
        let transfer = (grant & offers).any() & m.ready;
        arbiter.take = transfer & !open & !first.valid;
        first.ready = grant.bit(2) & m.ready;
        for i in 0..2 {
            s[i].ready = grant.bit(i) & m.ready;
        }
        if transfer {
            open = !last;
            owner = grant;
        }
    }
}

/// The bytes of a beat, no register.
#[derive(Clone, Debug, Block)]
struct Chosen<const W: usize, const K: usize> {
    pub second: Signal<In, Bit>,
    pub header: [Signal<In, Bits<W>>; 2],
    pub payload: [Signal<In, Bits<W>>; 2],
    pub lanes: [Signal<In, Bits<K>>; 2],
    pub data: Signal<Out, Bits<W>>,
}

impl<const W: usize, const K: usize> Logic for Chosen<W, K> {
    describe!(
        "frame_bytes",
        format!("w{W}"),
        "Bytes of a beat of a frame: headers or payload of one of two lanes."
    );

    fn update(&mut self) {
        let lane = usize::from(self.second.val());
        let payload = self.payload[lane].val();
        let mut data = self.header[lane].val();
        for byte in (0..K).filter(|&byte| self.lanes[lane].val().get_bit(byte)) {
            data.set_bits::<8>(8 * byte, payload.get_bits::<8>(8 * byte));
        }
        self.data.next = data;
    }

    fn connect(&mut self) {
        self.data.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "wire [{k}:0] lanes = second ? lanes_1 : lanes_0;\n\
             integer lane;\n\
             always @*\n    for (lane = 0; lane < {K}; lane = lane + 1)\n        \
             case ({{second, lanes[lane]}})\n            \
             2'd0: data[8*lane +: 8] = header_0[8*lane +: 8];\n            \
             2'd1: data[8*lane +: 8] = payload_0[8*lane +: 8];\n            \
             2'd2: data[8*lane +: 8] = header_1[8*lane +: 8];\n            \
             default: data[8*lane +: 8] = payload_1[8*lane +: 8];\n        \
             endcase\n",
            k = K - 1,
        ))
    }
}
