//! CRC-32 of Ethernet and of the ICRC, one beat a cycle, and the linear maps behind it.
//!
//! The register after a beat is a linear function over GF(2) of the register before it and of the bits of the beat:
//! both are matrices, computed here and printed as XOR trees. [`Map`] also moves a register over zero bytes, forth
//! and back, which is how a beat is handled that holds less than it could.
//!
//! Convention throughout: reflected (polynomial 0xedb88320, byte 0 first, bit 0 of a byte first) and raw, without the
//! inversions before and behind, so that the register is linear in the message.
use std::fmt::Write;

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

    /// The value of the map.
    #[must_use]
    pub fn apply(&self, register: u32) -> u32 {
        sum(&self.0, |bit| register >> bit & 1 == 1)
    }

    /// By rows: bit `i` of entry `r` says that bit `i` of the argument counts towards bit `r` of the value.
    #[must_use]
    pub fn rows(&self) -> [u32; 32] {
        std::array::from_fn(|row| mask(&self.0, row) as u32)
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

/// Row `row` of at most 64 columns.
fn mask(columns: &[u32], row: usize) -> u64 {
    let bit = |(i, column): (usize, &u32)| u64::from(column >> row & 1) << i;
    columns.iter().enumerate().map(bit).sum()
}

/// Data bits that one XOR tree of the first stage takes.
const GROUP: usize = 64;

/// CRC register over a stream of whole `W`-bit beats.
///
/// `register` shows the register behind a beat [`Crc::LATENCY`] cycles after the beat entered with `valid`; in
/// between and without `valid` it holds. A beat with `first` starts from `seed`. One beat a cycle, at most four LUT
/// levels: the beat is summed in groups of 64 bits, then the groups and the advanced register.
#[derive(Clone, Debug, LogicBlock)]
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
        assert!(
            W > 0 && W.is_multiple_of(GROUP),
            "CRC of {W}-bit beats: a multiple of {GROUP} is expected"
        );
        Self {
            clock: ClkRst::default(),
            valid: Signal::default(),
            first: Signal::default(),
            data: Signal::default(),
            register: Signal::default(),
            _seed: seed,
            _columns: beat_columns(W),
            _advance: Map::zero_bytes(W / 8),
            _state: (0, None),
        }
    }
}

impl<const W: usize> Logic for Crc<W> {
    describe!(
        "crc32",
        |this| format!("w{W}_{:08x}", this._seed),
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
        let groups: Vec<&[u32]> = self._columns.chunks(GROUP).collect();
        let sums: Vec<String> = (0..groups.len()).map(|g| format!("sum_{g}")).collect();
        let mut text = format!(
            "// Sums of the beat, by groups of {GROUP} bits.\nreg [31:0] {};\nreg valid_1, first_1;\n\
             always @(posedge clk) begin\n    valid_1 <= valid & !rst;\n    first_1 <= first;\n",
            sums.join(", ")
        );
        for (g, columns) in groups.iter().enumerate() {
            let slice = format!("data[{}:{}]", GROUP * (g + 1) - 1, GROUP * g);
            let row = |row| format!("^({slice} & 64'h{:016x})", mask(columns, row));
            assign(&mut text, &format!("    sum_{g} <="), row);
        }
        let rows = self._advance.rows();
        let row = |row: usize| format!("^(start & 32'h{:08x})", rows[row]);
        let _ = write!(
            text,
            "end\n// The register, moved on by a beat of zeros.\n\
             wire [31:0] start = first_1 ? 32'h{:08x} : register;\nwire [31:0] advanced;\n",
            self._seed
        );
        assign(&mut text, "assign advanced =", row);
        let _ = write!(
            text,
            "always @(posedge clk) begin\n    if (rst) register <= 32'h0;\n    \
             else if (valid_1) register <= advanced ^ {};\nend\n",
            sums.join(" ^ ")
        );
        Verilog::Custom(text)
    }
}

/// Appends an assignment of 32 bits, each an expression of its own.
fn assign(text: &mut String, target: &str, row: impl Fn(usize) -> String) {
    let rows: Vec<String> = (0..32).rev().map(row).collect();
    let _ = writeln!(text, "{target} {{\n        {}}};", rows.join(",\n        "));
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
    fn rows_are_the_columns_turned() {
        let map = Map::zero_bytes(5);
        let register = 0xdead_beef_u32;
        let by_rows = (0..32).map(|r| ((map.rows()[r] & register).count_ones() & 1) << r);
        assert_eq!(by_rows.sum::<u32>(), map.apply(register));
    }

    #[test]
    fn beats_with_gaps() {
        let mut u = Crc::<64>::new(0xffff_ffff);
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
            assert_eq!(cycle(false, None), serial(!0, &message));
            assert_eq!(cycle(false, None), serial(!0, &message), "holds");
        }
    }
}
