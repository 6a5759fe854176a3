//! Images of the host contract as structures: a word of an entry in host memory, seen field by field.
//!
//! No logic and no latency: the packed types of [`image`] are declared from the same list of fields as the bytes in
//! host memory, so a structure is the low bits of its word.
use crate::bus::types::image;
use crate::prelude::*;

/// Bits of an image.
pub const IMAGE: usize = 512;

/// A structure of the host contract.
pub trait Image: Synth {
    /// Name of its block.
    const NAME: &'static str;
    /// The structure in the low bits of `word`.
    fn unpack(word: Bits<IMAGE>) -> Self;
}

macro_rules! take {
    ($word:ident, $at:ident, bool, $w:literal) => {
        $word.get_bit($at)
    };
    ($word:ident, $at:ident, $t:tt, $w:literal) => {
        $word.get_bits::<$w>($at)
    };
}

macro_rules! unpack {
    ($name:ident { $( $(#[$m:meta])* $f:ident : $t:tt [$w:literal] ),* }) => {
        impl Image for image::$name {
            const NAME: &'static str = stringify!($name);
            #[allow(unused_assignments, reason = "the place behind the last field")]
            fn unpack(word: Bits<IMAGE>) -> Self {
                let mut at = 0;
                $( let $f = take!(word, at, $t, $w); at += $w; )*
                Self { $($f),* }
            }
        }
    };
}
ferroce_proto::with_cmd_head!(unpack);
ferroce_proto::with_sq_ctx!(unpack);
ferroce_proto::with_av_ctx!(unpack);
ferroce_proto::with_rq_ctx!(unpack);
ferroce_proto::with_mr_ctx!(unpack);
ferroce_proto::with_cq_ctx!(unpack);
ferroce_proto::with_eq_ctx!(unpack);
ferroce_proto::with_srq_ctx!(unpack);
ferroce_proto::with_send_wqe!(unpack);
ferroce_proto::with_gid_entry!(unpack);
ferroce_proto::with_port_config!(unpack);

/// Shows a word as structure `T`.
#[derive(Clone, Debug, Block)]
pub struct Unpack<T: Image> {
    /// The word.
    pub word: Signal<In, Bits<IMAGE>>,
    /// The structure in it.
    pub image: Signal<Out, T>,
}

impl<T: Image> Logic for Unpack<T> {
    describe!(
        "unpack",
        T::NAME.to_lowercase(),
        "A structure of the host contract, from its word."
    );

    fn update(&mut self) {
        self.image.next = T::unpack(self.word.val());
    }

    fn connect(&mut self) {
        self.image.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!("assign image = word[{}:0];\n", T::BITS - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroce_proto::abi::{mr, qpc};

    fn word(bytes: &[u8; 64]) -> Bits<IMAGE> {
        let mut word = Bits::default();
        for (i, &byte) in bytes.iter().enumerate() {
            word.set_bits::<8>(8 * i, byte.to_bits());
        }
        word
    }

    #[test]
    fn fields_are_those_of_the_bytes() {
        let bytes = std::array::from_fn(|i| (i * 151 + 29) as u8);
        let (sw, hw) = (
            qpc::RqCtx::parse(&bytes),
            image::RqCtx::unpack(word(&bytes)),
        );
        assert_eq!(hw.remote_gid.to_u128(), sw.remote_gid);
        assert_eq!((hw.mtu.to_u8(), hw.srq_valid), (sw.mtu, sw.srq_valid));
        assert_eq!((hw.pd.to_u32(), hw.qkey.to_u32()), (sw.pd, sw.qkey));
        let (sw, hw) = (mr::MrCtx::parse(&bytes), image::MrCtx::unpack(word(&bytes)));
        assert_eq!((hw.last.to_u64(), hw.key.to_u32()), (sw.last, sw.key));
        assert_eq!(hw.remote_atomic, sw.remote_atomic);
    }

    #[test]
    fn a_structure_is_the_low_bits_of_its_word() {
        let bytes = std::array::from_fn(|i| (i * 73 + 5) as u8);
        let bits: Bits<{ image::SqCtx::BITS }> = image::SqCtx::unpack(word(&bytes)).into();
        assert_eq!(bits, word(&bytes).get_bits(0));
    }
}
