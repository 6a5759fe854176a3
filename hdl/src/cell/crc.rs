//! CRC-32 of Ethernet and of the ICRC, one beat a cycle, and the linear maps behind it.
//!
//! The register after a beat is a linear function over GF(2) of the register before it and of the bits of the beat:
//! both are matrices, computed here and printed as XOR trees. [`Map`] also moves a register over zero bytes, forth
//! and back, which is how a beat is handled that holds less than it could.
//!
//! Convention throughout: reflected (polynomial 0xedb88320, byte 0 first, bit 0 of a byte first) and raw, without the
//! inversions before and behind, so that the register is linear in the message.
use std::fmt::Write;

use crate::cell::shared_sums::{Shared, assign, xor};
use crate::prelude::*;

/// The generator polynomial, reflected.
pub const POLYNOMIAL: u32 = 0xedb8_8320;

/// The register behind a message, started from ones, and its inverted CRC, least significant byte first.
pub const RESIDUE: u32 = 0xdebb_20e3;

/// The register one zero bit later.
const fn after_zero_bit(register: u32) -> u32 {
    (register >> 1) ^ (POLYNOMIAL * (register & 1))
}

/// The register one zero bit earlier: the inverse of [`after_zero_bit`].
const fn before_zero_bit(register: u32) -> u32 {
    let out = register >> 31;
    ((register ^ (POLYNOMIAL * out)) << 1) | out
}

/// A linear map of the register, by columns: entry `i` is what bit `i` becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Map([u32; 32]);

impl Map {
    /// The register `bytes` zero bytes later.
    #[must_use]
    pub fn zero_bytes(bytes: usize) -> Self {
        Self::repeated(after_zero_bit, 8 * bytes)
    }

    /// The register `bytes` zero bytes earlier: the inverse of [`Map::zero_bytes`].
    #[must_use]
    pub fn undo_zero_bytes(bytes: usize) -> Self {
        Self::repeated(before_zero_bit, 8 * bytes)
    }

    fn repeated(step: fn(u32) -> u32, times: usize) -> Self {
        Self(std::array::from_fn(|bit| {
            (0..times).fold(1 << bit, |register, _| step(register))
        }))
    }

    /// By columns: what each bit becomes.
    #[must_use]
    pub fn columns(&self) -> &[u32; 32] {
        &self.0
    }

    /// The coordinates in which `step` is a shift with feedback, so that a few steps are few terms a bit: a 1 alone at
    /// place `i` is 1 behind `i` steps.
    ///
    /// # Panics
    /// If these 32 are not independent; those of any number of zero bytes that is a power of two are.
    #[must_use]
    pub fn shifting(step: &Self) -> Self {
        let mut powers = [1; 32];
        for i in 1..32 {
            powers[i] = step.apply(powers[i - 1]);
        }
        Self(powers).inverse()
    }

    /// This map and `next` behind it.
    #[must_use]
    pub fn then(&self, next: &Self) -> Self {
        Self(self.0.map(|column| next.apply(column)))
    }

    /// The map that undoes this one.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn inverse(&self) -> Self {
        // `of[i]` is what this map makes of `inverse[i]`
        let mut of = self.0;
        let mut inverse: [u32; 32] = std::array::from_fn(|bit| 1 << bit);
        for bit in 0..32 {
            let pivot = (bit..32).find(|&i| of[i] >> bit & 1 == 1);
            let pivot = pivot.expect("the columns are independent");
            of.swap(bit, pivot);
            inverse.swap(bit, pivot);
            for i in (0..32).filter(|&i| i != bit) {
                if of[i] >> bit & 1 == 1 {
                    of[i] ^= of[bit];
                    inverse[i] ^= inverse[bit];
                }
            }
        }
        Self(inverse)
    }

    /// The bits that count towards bit `row`.
    pub(super) fn row(&self, row: usize) -> impl Iterator<Item = usize> {
        (0..32).filter(move |&bit| self.0[bit] >> row & 1 == 1)
    }

    /// The value of the map.
    #[must_use]
    pub fn apply(&self, register: u32) -> u32 {
        sum(&self.0, |bit| register >> bit & 1 == 1)
    }
}

/// What each bit of a beat of `bits` bits adds to the register behind the beat.
#[must_use]
pub fn beat_columns(bits: usize) -> Vec<u32> {
    let mut columns: Vec<u32> =
        std::iter::successors(Some(POLYNOMIAL), |&c| Some(after_zero_bit(c)))
            .take(bits)
            .collect();
    columns.reverse();
    columns
}

/// The sum over GF(2) of the columns that `chosen` names.
fn sum(columns: &[u32], chosen: impl Fn(usize) -> bool) -> u32 {
    let of = |(bit, column): (usize, &u32)| if chosen(bit) { *column } else { 0 };
    columns.iter().enumerate().map(of).fold(0, |a, b| a ^ b)
}

/// Beats are a multiple of this, in bits.
const BEAT: usize = 64;

/// CRC register over a stream of whole `W`-bit beats.
///
/// `register` shows the register behind a beat [`Crc::LATENCY`] cycles after the beat entered with `valid`; in
/// between and without `valid` it holds. A beat with `first` starts from `seed`. One beat a cycle, three LUT levels: the
/// bits of the beat that count towards the same rows of a group of rows are summed, then these sums and the advanced
/// register. That takes half the LUTs of a tree for each row, and fewer if `register` is kept in coordinates in which few
/// of its bits count towards one.
#[derive(Clone, Debug, Block)]
#[block(no_default)]
pub struct Crc<const W: usize> {
    /// Clock and reset.
    pub clock: ClkRst,
    /// A beat enters.
    pub valid: Signal<In, Bit>,
    /// It is the first of its message.
    pub first: Signal<In, Bit>,
    /// The beat, byte 0 in bits 7:0.
    pub data: Signal<In, Bits<W>>,
    /// The register.
    pub register: Signal<Out, Bits<32>>,
    _seed: u32,
    _map: Map,
    _columns: Vec<u32>,
    _advance: Map,
    _state: (u32, Option<(bool, u32)>),
}

impl<const W: usize> Crc<W> {
    /// Cycles from a beat to the register behind it.
    pub const LATENCY: usize = 2;

    /// A register that starts every message from `seed`.
    ///
    /// # Panics
    /// If `W` is not a multiple of 64.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        Self::seen_through(seed, Map::zero_bytes(0))
    }

    /// As [`Crc::new`], but `register` is what `map` makes of it. That is free: it is all in the constants.
    ///
    /// # Panics
    /// If `W` is not a multiple of 64, or `map` cannot be undone.
    #[must_use]
    pub fn seen_through(seed: u32, map: Map) -> Self {
        assert!(
            W > 0 && W.is_multiple_of(BEAT),
            "CRC of {W}-bit beats: a multiple of {BEAT} is expected"
        );
        let columns = beat_columns(W);
        Self {
            clock: ClkRst::default(),
            valid: Signal::default(),
            first: Signal::default(),
            data: Signal::default(),
            register: Signal::default(),
            _seed: map.apply(seed),
            _map: map,
            _columns: columns.into_iter().map(|c| map.apply(c)).collect(),
            _advance: map.inverse().then(&Map::zero_bytes(W / 8)).then(&map),
            _state: (0, None),
        }
    }
}

impl<const W: usize> Logic for Crc<W> {
    describe!(
        "crc32",
        // any number does that tells the maps apart
        |this| format!(
            "w{W}_{:08x}_{:08x}",
            this._seed,
            this._map.apply(POLYNOMIAL)
        ),
        "CRC-32 register over whole beats, a beat a cycle, two cycles of latency."
    );

    fn update(&mut self) {
        if !self.clock.clk.pos_edge() {
            return;
        }
        let (mut register, summed) = self._state;
        if let Some((first, beat)) = summed {
            let before = if first { self._seed } else { register };
            register = self._advance.apply(before) ^ beat;
        }
        let data = self.data.val();
        let entering = self.valid.val().then(|| {
            (
                self.first.val(),
                sum(&self._columns, |bit| data.get_bit(bit)),
            )
        });
        self._state = if self.clock.rst.val() {
            (0, None)
        } else {
            (register, entering)
        };
        self.register.next = self._state.0.to_bits();
    }

    fn connect(&mut self) {
        self.register.connect();
    }

    fn hdl(&self) -> Verilog {
        // As many rows in a group as leave about ten bits of the beat to a sum.
        let beat = Shared::new(&self._columns, W.ilog2() as usize - 3);
        let started = self._advance.apply(self._seed);
        let mut text = String::from("// Sums of bits of the beat.\n");
        for (g, (_, sums)) in beat.groups.iter().enumerate() {
            let _ = writeln!(text, "reg [{}:0] sum_{g};", sums.len() - 1);
        }
        text.push_str(
            "reg valid_1, first_1;\nalways @(posedge clk) begin\n    \
             valid_1 <= valid & !rst;\n    first_1 <= first;\n",
        );
        for (g, (_, sums)) in beat.groups.iter().enumerate() {
            let bits = |at: usize| xor(sums[at].iter().map(|bit| format!("data[{bit}]")));
            assign(&mut text, &format!("    sum_{g} <="), sums.len(), bits);
        }
        text.push_str(
            "end\nalways @(posedge clk) begin\n    if (rst) register <= 32'h0;\n    else if (valid_1)",
        );
        let row = |row: usize| {
            let held = xor(self._advance.row(row).map(|bit| format!("register[{bit}]")));
            let moved = format!("(first_1 ? 1'b{} : {held})", started >> row & 1);
            xor(beat.terms(row, "sum").into_iter().chain([moved]))
        };
        assign(&mut text, " register <=", 32, row);
        text.push_str("end\n");
        Verilog::Custom(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The register behind `message`, bit by bit.
    fn serial(start: u32, message: &[u8]) -> u32 {
        let bits = message
            .iter()
            .flat_map(|byte| (0..8).map(move |i| byte >> i & 1));
        bits.fold(start, |register, bit| {
            after_zero_bit(register ^ u32::from(bit))
        })
    }

    fn message(len: usize) -> Vec<u8> {
        (0..len)
            .map(|i| (i * 151 + (i >> 5) * 17 + 3) as u8)
            .collect()
    }

    #[test]
    fn check_value_of_the_catalogue() {
        assert_eq!(!serial(!0, b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn residue() {
        let mut message = message(77);
        let crc = !serial(!0, &message);
        message.extend(crc.to_le_bytes());
        assert_eq!(serial(!0, &message), RESIDUE);
    }

    #[test]
    fn zero_bytes_forth_and_back() {
        for bytes in [0, 1, 7, 63, 64] {
            let (forth, back) = (Map::zero_bytes(bytes), Map::undo_zero_bytes(bytes));
            let start = serial(0x1234_5678, &message(9));
            assert_eq!(forth.apply(start), serial(start, &vec![0; bytes]));
            assert_eq!(back.apply(forth.apply(start)), start);
        }
    }

    #[test]
    fn beats_with_gaps() {
        check_beats(Crc::new(0xffff_ffff), Map::zero_bytes(0));
    }

    #[test]
    fn seen_through_a_map() {
        let back = Map::undo_zero_bytes(2);
        for map in [
            back,
            Map::shifting(&back),
            Map::shifting(&Map::zero_bytes(64)),
        ] {
            check_beats(Crc::seen_through(0xffff_ffff, map), map);
        }
    }

    #[test]
    fn maps_composed_and_undone() {
        let (forth, back) = (Map::zero_bytes(4), Map::undo_zero_bytes(4));
        assert_eq!(forth.inverse(), back);
        assert_eq!(forth.then(&forth), Map::zero_bytes(8));
        let shifting = Map::shifting(&forth);
        let step = shifting.inverse().then(&forth).then(&shifting);
        assert!((0..31).all(|bit| step.columns()[bit] == 2 << bit));
    }

    fn check_beats(mut u: Crc<64>, map: Map) {
        u.connect_all();
        let mut cycle = |rst: bool, beat: Option<(bool, u64)>| {
            u.valid.next = beat.is_some();
            u.first.next = beat.is_some_and(|b| b.0);
            u.data.next = beat.map_or(!0, |b| b.1).to_bits();
            u.clock.drive(false, rst);
            assert!(simulate(&mut u, 50));
            u.clock.drive(true, rst);
            assert!(simulate(&mut u, 50));
            u32::try_from(u.register.val().to_u64()).unwrap()
        };
        cycle(true, None);
        for beats in [1, 3] {
            let message = message(8 * beats);
            for (i, beat) in message.chunks(8).enumerate() {
                cycle(false, None);
                cycle(
                    false,
                    Some((i == 0, u64::from_le_bytes(beat.try_into().unwrap()))),
                );
            }
            let register = map.apply(serial(!0, &message));
            assert_eq!(cycle(false, None), register);
            assert_eq!(cycle(false, None), register, "holds");
        }
    }
}
