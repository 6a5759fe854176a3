//! Images of the host contract.
// The accessors that the derive generates have no documentation.
#![allow(missing_docs, rustdoc::broken_intra_doc_links)]

use rust_hdl_core::prelude::*;

macro_rules! ty {
    (bool $w:literal) => { Bit };
    ($t:tt $w:literal) => { Bits<$w> };
}

/// Declares the packed type of a structure of `ferroce_proto::abi`.
macro_rules! image {
    ($name:ident { $( $(#[$m:meta])* $f:ident : $t:tt [$w:literal] ),* }) => {
        #[doc = concat!("Packed form of `ferroce_proto::abi` ", stringify!($name), ".")]
        #[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct)]
        pub struct $name { $( $(#[$m])* pub $f: ty!($t $w) ),* }
    };
}

ferroce_proto::with_sq_ctx!(image);
ferroce_proto::with_av_ctx!(image);
ferroce_proto::with_rq_ctx!(image);
ferroce_proto::with_mr_ctx!(image);
ferroce_proto::with_cq_ctx!(image);
ferroce_proto::with_cmd_head!(image);
ferroce_proto::with_cmd_cpl!(image);
ferroce_proto::with_gid_entry!(image);
ferroce_proto::with_port_config!(image);
ferroce_proto::with_send_wqe!(image);
ferroce_proto::with_recv_wqe!(image);
ferroce_proto::with_sge!(image);
ferroce_proto::with_cqe!(image);
ferroce_proto::with_eq_ctx!(image);
ferroce_proto::with_eqe!(image);
ferroce_proto::with_srq_ctx!(image);
ferroce_proto::with_qp_state!(image);

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(t: TypeDescriptor) -> Vec<(String, usize, usize)> {
        let TypeKind::Composite(fields) = t.kind else {
            panic!("not a structure")
        };
        let mut lsb = 0;
        fields
            .into_iter()
            .map(|f| {
                let width = match f.kind.kind {
                    TypeKind::Bits(n) => n,
                    other => panic!("{}: {other:?}", f.fieldname),
                };
                lsb += width;
                (f.fieldname, lsb - width, width)
            })
            .collect()
    }

    #[test]
    fn images_have_the_fields_of_the_contract() {
        use ferroce_proto::abi::{cq, qpc};
        for (hw, sw) in [
            (SqCtx::descriptor(), qpc::SqCtx::FIELDS),
            (AvCtx::descriptor(), qpc::AvCtx::FIELDS),
            (RqCtx::descriptor(), qpc::RqCtx::FIELDS),
            (Cqe::descriptor(), cq::Cqe::FIELDS),
        ] {
            let sw: Vec<_> = sw
                .iter()
                .map(|f| (f.name.to_string(), f.lsb, f.width))
                .collect();
            assert_eq!(offsets(hw), sw);
        }
    }
}
