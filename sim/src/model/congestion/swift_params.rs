//! The parameters of Swift, under the names that its paper gives them.

use ferroce_proto::abi::rates::SWIFT_FIELDS;

use super::params::BadParam;

/// Parameters of Swift. Windows count in packets of `2^log_packet` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwiftParams {
    /// Log2 of the bytes that count as a packet.
    pub log_packet: u32,
    /// Target delay of a large window, ns: that of the path with all its hops, and some queue.
    pub base_target: u32,
    /// Additive increase, 1/256 packet a round trip.
    pub ai: u32,
    /// Multiplicative decrease, 1/1024 of the excess of the delay.
    pub beta: u32,
    /// What a decrease takes off at most, 1/1024 of the window.
    pub max_mdf: u32,
    /// What a small window adds to the target delay at most, ns.
    pub fs_range: u32,
    /// Alpha of the paper: what a window of one packet adds, ns, before `fs_beta` is taken off.
    pub fs_alpha: u32,
    /// Beta of the paper, negated, ns.
    pub fs_beta: u32,
    /// Least window, 1/1024 packet.
    pub min_cwnd: u32,
    /// Largest window, packets.
    pub max_cwnd: u32,
    /// Window of a queue pair before its first acknowledgement, packets. The paper names none.
    pub initial_cwnd: u32,
    /// Timeouts in a row, the last of which sets the least window.
    pub retx_reset_threshold: u32,
}

impl Default for SwiftParams {
    /// Those of Google's model of Falcon (isekai), with a range of 100 us between windows of 0.1 and 256 packets. It has no
    /// `log_packet` and no `initial_cwnd`.
    fn default() -> Self {
        Self {
            log_packet: 12,
            base_target: 25_000,
            ai: 256,
            beta: 819,
            max_mdf: 512,
            fs_range: 0,
            fs_alpha: 0,
            fs_beta: 0,
            min_cwnd: 10,
            max_cwnd: 256,
            initial_cwnd: 16,
            retx_reset_threshold: 3,
        }
        .with_flow_scaling(100_000, 0.1, 256.0)
    }
}

impl SwiftParams {
    /// Longest round trip, cycles: what takes longer counts as that.
    pub const RTT_MAX: u64 = (1 << 24) - 1;
    /// Largest window, 2^-8 bytes.
    pub const CWND_MAX: u64 = (1 << 32) - 1;

    /// The target delay rises by up to `range` ns while the window falls from `max_cwnd` to `min_cwnd` packets (section 3.5).
    #[must_use]
    pub fn with_flow_scaling(mut self, range: u32, min_cwnd: f64, max_cwnd: f64) -> Self {
        let alpha = f64::from(range) / (1.0 / min_cwnd.sqrt() - 1.0 / max_cwnd.sqrt());
        self.fs_range = range;
        self.fs_alpha = alpha.round() as u32;
        self.fs_beta = (alpha / max_cwnd.sqrt()).round() as u32;
        self
    }

    /// The registers that hold these, and their values.
    #[must_use]
    pub fn registers(mut self) -> Vec<(u32, u32)> {
        let mut registers: Vec<(u32, u32)> = Vec::new();
        for field in SWIFT_FIELDS {
            let bits = *self.field(field.name) << field.at;
            match registers.last_mut().filter(|last| last.0 == field.register) {
                Some((_, value)) => *value |= bits,
                None => registers.push((field.register, bits)),
            }
        }
        registers
    }

    /// Writes a register; false if it is another's.
    pub(in crate::model) fn write(&mut self, register: u32, value: u32) -> bool {
        let mut is_own = false;
        for field in SWIFT_FIELDS.iter().filter(|f| f.register == register) {
            *self.field(field.name) = field.value(value);
            is_own = true;
        }
        is_own
    }

    /// Reads a register; 0 if it is another's.
    pub(in crate::model) fn read(&self, register: u32) -> u32 {
        let registers = self.registers();
        let own = registers.iter().find(|(at, _)| *at == register);
        own.map_or(0, |(_, value)| *value)
    }

    fn field(&mut self, name: &str) -> &mut u32 {
        macro_rules! field {
            ($($field:ident),*) => {
                match name {
                    $(stringify!($field) => &mut self.$field,)*
                    _ => unreachable!("{name} is a parameter of Swift"),
                }
            };
        }
        field!(
            base_target,
            ai,
            beta,
            max_mdf,
            fs_range,
            fs_alpha,
            fs_beta,
            min_cwnd,
            max_cwnd,
            initial_cwnd,
            retx_reset_threshold
        )
    }

    /// Are all values in range?
    ///
    /// # Errors
    /// The first parameter that is not.
    pub fn check(&self) -> Result<(), BadParam> {
        let mut own = *self;
        let fields = SWIFT_FIELDS.iter().map(|field| {
            let value = *own.field(field.name);
            (field.name, value, field.least, field.greatest)
        });
        let packet = ("log_packet", self.log_packet, 8, 12);
        for (name, value, low, high) in fields.chain([packet]) {
            if !(low..=high).contains(&value) {
                return Err(BadParam {
                    name,
                    value,
                    low,
                    high,
                });
            }
        }
        Ok(())
    }
}
