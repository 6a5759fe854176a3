//! Names of values, and rates.

use std::ffi::{CStr, c_char, c_int};

fn pick(names: &[&'static CStr], index: c_int, other: &'static CStr) -> *const c_char {
    let name = usize::try_from(index).ok().and_then(|i| names.get(i));
    name.unwrap_or(&other).as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn ibv_wc_status_str(status: c_int) -> *const c_char {
    let names = [
        c"success",
        c"local length error",
        c"local QP operation error",
        c"local EE context operation error",
        c"local protection error",
        c"Work Request Flushed Error",
        c"memory management operation error",
        c"bad response error",
        c"local access error",
        c"remote invalid request error",
        c"remote access error",
        c"remote operation error",
        c"transport retry counter exceeded",
        c"RNR retry counter exceeded",
        c"local RDD violation error",
        c"remote invalid RD request",
        c"aborted error",
        c"invalid EE context number",
        c"invalid EE context state",
        c"fatal error",
        c"response timeout error",
        c"general error",
        c"TM error",
        c"TM software rendezvous",
    ];
    pick(&names, status, c"unknown")
}

#[unsafe(no_mangle)]
extern "C" fn ibv_node_type_str(node_type: c_int) -> *const c_char {
    let names = [
        c"unknown",
        c"InfiniBand channel adapter",
        c"InfiniBand switch",
        c"InfiniBand router",
        c"iWARP NIC",
        c"usNIC",
        c"usNIC UDP",
        c"unspecified",
    ];
    pick(&names, node_type, c"unknown")
}

#[unsafe(no_mangle)]
extern "C" fn ibv_port_state_str(state: c_int) -> *const c_char {
    let names = [
        c"no state change (NOP)",
        c"down",
        c"init",
        c"armed",
        c"active",
        c"active defer",
    ];
    pick(&names, state, c"unknown")
}

#[unsafe(no_mangle)]
extern "C" fn ibv_event_type_str(event: c_int) -> *const c_char {
    let names = [
        c"CQ error",
        c"local work queue catastrophic error",
        c"invalid request local work queue error",
        c"local access violation work queue error",
        c"communication established",
        c"send queue drained",
        c"path migrated",
        c"path migration request error",
        c"local catastrophic error",
        c"port active",
        c"port error",
        c"LID change",
        c"P_Key change",
        c"SM change",
        c"SRQ catastrophic error",
        c"SRQ limit reached",
        c"last WQE reached",
        c"client reregistration",
        c"GID table change",
        c"WQ fatal",
    ];
    pick(&names, event, c"unknown")
}

/// Codes of rates (IB1 9.11): the code, multiples of 2.5 Gbit/s, Mbit/s.
const RATES: [(c_int, c_int, c_int); 23] = [
    (2, 1, 2_500),
    (5, 2, 5_000),
    (3, 4, 10_000),
    (6, 8, 20_000),
    (4, 12, 30_000),
    (7, 16, 40_000),
    (8, 24, 60_000),
    (9, 32, 80_000),
    (10, 48, 120_000),
    (11, 5, 14_062),
    (12, 22, 56_250),
    (13, 45, 112_500),
    (14, 67, 168_750),
    (15, 10, 25_781),
    (16, 41, 103_125),
    (17, 82, 206_250),
    (18, 124, 309_375),
    (19, 11, 28_125),
    (20, 20, 53_125),
    (21, 160, 425_000),
    (22, 240, 637_500),
    (23, 320, 850_000),
    (24, 480, 1_275_000),
];

fn rate(is_meant: impl Fn(&(c_int, c_int, c_int)) -> bool) -> Option<(c_int, c_int, c_int)> {
    RATES.into_iter().find(is_meant)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_rate_to_mult(code: c_int) -> c_int {
    rate(|r| r.0 == code).map_or(-1, |r| r.1)
}

#[unsafe(no_mangle)]
extern "C" fn mult_to_ibv_rate(mult: c_int) -> c_int {
    rate(|r| r.1 == mult).map_or(0, |r| r.0)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_rate_to_mbps(code: c_int) -> c_int {
    rate(|r| r.0 == code).map_or(-1, |r| r.2)
}

#[unsafe(no_mangle)]
extern "C" fn mbps_to_ibv_rate(mbps: c_int) -> c_int {
    rate(|r| r.2 == mbps).map_or(0, |r| r.0)
}
