//! What the host contract consists of: every structure and every list of codes of `ferroce_proto::abi`.

use ferroce_proto::abi::{Code, Structure, cmd, cq, eq, exception, mr, qpc, regs, wqe};

/// A structure with its name in C.
pub(super) struct Entry {
    /// Name in C, in upper case, without the prefix of the project.
    pub(super) name: &'static str,
    /// The structure.
    pub(super) structure: Structure,
}

/// A list of codes with its name in C.
pub(super) struct Codes {
    /// Name in C, in upper case, without the prefix of the project.
    pub(super) name: &'static str,
    /// Field or register that has them.
    pub(super) of: &'static str,
    /// The values.
    pub(super) codes: &'static [Code],
}

macro_rules! entries {
    ($($name:literal $structure:path;)*) => {
        &[$(Entry { name: $name, structure: <$structure>::STRUCTURE }),*]
    };
}

/// The structures, in the order of the page.
pub(super) const STRUCTURES: &[Entry] = entries! {
    "CMD" cmd::CmdHead;
    "CPL" cmd::CmdCpl;
    "QP_STATE" cmd::QpState;
    "GID" cmd::GidEntry;
    "PORT" cmd::PortConfig;
    "MR" mr::MrCtx;
    "CQ" cq::CqCtx;
    "EQ" eq::EqCtx;
    "SQ" qpc::SqCtx;
    "AV" qpc::AvCtx;
    "RQ" qpc::RqCtx;
    "SRQ" qpc::SrqCtx;
    "SEND" wqe::SendWqe;
    "SGE" wqe::Sge;
    "ATOMIC" wqe::AtomicOperands;
    "BIND" wqe::WindowBind;
    "UD" wqe::UdAddress;
    "RECV" wqe::RecvWqe;
    "CQE" cq::Cqe;
    "EQE" eq::Eqe;
    "EXC_HEAD" exception::Head;
    "EXC_CONFIG" exception::Config;
    "EXC_CONSUMER" exception::Consumer;
    "EXC_STATUS" exception::Status;
    "PARAMS" regs::Params;
    "PARAMS2" regs::Params2;
    "PARAMS3" regs::Params3;
};

/// The lists of codes, in the order of the page.
pub(super) const CODES: &[Codes] = &[
    list("CMD", "opcode of a command", cmd::opcode::CODES),
    list("CMD_STATUS", "status of a command", cmd::status::CODES),
    list("STATE", "states of a queue pair", qpc::state::CODES),
    list("TYPE", "qp_type", qpc::qp_type::CODES),
    list("WQE", "opcode of a send WQE", wqe::opcode::CODES),
    list("CQE_OP", "opcode of a CQE", cq::opcode::CODES),
    list("WC", "status of a CQE", cq::status::CODES),
    list("EVENT", "event of an EQE", eq::event::CODES),
    list("CONTROL", "bits of CONTROL", regs::control::CODES),
    list("STATUS", "bits of STATUS", regs::status::CODES),
    list("FEATURE", "bits of FEATURES", regs::feature::CODES),
];

const fn list(name: &'static str, of: &'static str, codes: &'static [Code]) -> Codes {
    Codes { name, of, codes }
}

/// The structure of a name in C.
pub(super) fn structure(name: &str) -> Option<&'static Entry> {
    STRUCTURES.iter().find(|entry| entry.name == name)
}

/// The list of a name in C.
pub(super) fn codes(name: &str) -> Option<&'static Codes> {
    CODES.iter().find(|list| list.name == name)
}
