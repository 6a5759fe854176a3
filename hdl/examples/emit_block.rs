//! Prints the Verilog of a block by name: `cargo run -p ferroce-hdl --example emit_block -- requester`.
use ferroce_hdl::{
    emit,
    transport::{congestion, requester, responder},
};
fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let design = emit::with_stack(move || {
        use rust_hdl_core::prelude::Block;
        fn go<B: Block>(mut b: B) -> emit::Design {
            b.connect_all();
            emit::verilog(&b).unwrap_or_else(|e| {
                for e in e {
                    eprintln!("{e}");
                }
                std::process::exit(1)
            })
        }
        match name.as_str() {
            "rq_state" => go(responder::rq_state::RqStateTable::<8, 6>::default()),
            "rx_check" => go(responder::rx_check::RxCheck::<8, 64, 1>::default()),
            "rx_front" => go(ferroce_hdl::eth::rx_front::RxFront::<512, 64, 11, 10>::default()),
            "rx_front64" => go(ferroce_hdl::eth::rx_front::RxFront::<64, 8, 14, 10>::default()),
            "exceptions" => go(ferroce_hdl::eth::exceptions::Exceptions::<512, 64, 10>::default()),
            "exceptions64" => go(ferroce_hdl::eth::exceptions::Exceptions::<64, 8, 13>::default()),
            "reply" => go(responder::reply::ReplyQueue::<512, 64, 8>::default()),
            "reply64" => go(responder::reply::ReplyQueue::<64, 8, 8>::default()),
            "responder" => go(responder::Responder::<8, 6>::default()),
            "rq_fetch" => go(ferroce_hdl::queue::rq_fetch::RqFetch::<512, 8>::default()),
            "rq_fetch64" => go(ferroce_hdl::queue::rq_fetch::RqFetch::<64, 8>::default()),
            "sq_state" => go(requester::sq_state::SqStateTable::<8>::default()),
            "send" => go(requester::send::SendPath::<8>::default()),
            "send_queues" => go(requester::send_queues::SendQueues::<512, 8, 14>::default()),
            "list_walk" => go(requester::list_walk::ListWalk::default()),
            "header_tx" => go(ferroce_hdl::ib::header_tx::HeaderTx::<8>::default()),
            "segmenter" => go(requester::segmenter::Segmenter::<8>::default()),
            "wqe_check" => go(requester::wqe_check::WqeCheck::<8>::default()),
            "retire" => go(requester::retire::Retire::<8, 14>::default()),
            "cq_write" => go(ferroce_hdl::queue::cq_write::CqWrite::<512, 64, 8>::default()),
            "cq_write_64" => go(ferroce_hdl::queue::cq_write::CqWrite::<64, 8, 8>::default()),
            "eq_write" => go(ferroce_hdl::queue::eq_write::EqWrite::<512, 64, 3>::default()),
            "eq_write_64" => go(ferroce_hdl::queue::eq_write::EqWrite::<64, 8, 4>::default()),
            "qp_events" => go(ferroce_hdl::queue::eq_write::qp_events::QpEvents::<8, 8>::default()),
            "csr" => go(ferroce_hdl::control::csr::Csr::<8, 8>::default()),
            "drain" => go(ferroce_hdl::control::drain::Drain::default()),
            "restart" => go(ferroce_hdl::control::restart::Restart::default()),
            "failures" => go(ferroce_hdl::engine::failures::Failures::default()),
            "host_port" => go(ferroce_hdl::memory::host_port::HostPort::<512, 64>::default()),
            "transmit" => go(ferroce_hdl::engine::transmit::TransmitSide::<
                512,
                64,
                8,
                14,
                9,
            >::default()),
            "transmit64" => go(ferroce_hdl::engine::transmit::TransmitSide::<
                64,
                8,
                8,
                14,
                10,
            >::default()),
            "receive" => go(ferroce_hdl::engine::receive::ReceiveSide::<512, 64, 8, 11>::default()),
            "receive64" => go(ferroce_hdl::engine::receive::ReceiveSide::<64, 8, 8, 14>::default()),
            "engine" => ferroce_hdl::engine::builds::verilog(512).unwrap(),
            "engine64" => ferroce_hdl::engine::builds::verilog(64).unwrap(),
            "track" => go(requester::track::Track::<8>::default()),
            "place_order" => go(ferroce_hdl::transport::place_order::PlaceOrder::default()),
            "scatter" => go(ferroce_hdl::memory::scatter::Scatter::<512, 64, 8>::default()),
            "mr_table" => go(ferroce_hdl::memory::mr_table::MrTable::<10, 3>::default()),
            "reaction_point" => go(congestion::reaction_point::ReactionPoint::<9, 6>::default()),
            "dcqcn" => go(congestion::dcqcn::Dcqcn::<9>::default()),
            "calendar" => go(congestion::calendar::Calendar::<9, 6>::default()),
            "calendar14" => go(congestion::calendar::Calendar::<14, 10>::default()),
            "class_port" => ferroce_hdl::egress::standard(512).unwrap(),
            "class_turn" => go(ferroce_hdl::egress::class_turn::ClassTurn::<4>::default()),
            "class_port64" => ferroce_hdl::egress::standard(64).unwrap(),
            "dcqcn14" => go(congestion::dcqcn::Dcqcn::<14>::default()),
            "timer" => go(requester::timer::Timer::<8>::default()),
            _ => go(requester::top::Requester::<512, 8, 14>::default()),
        }
    });
    print!("{}", design.source());
}
