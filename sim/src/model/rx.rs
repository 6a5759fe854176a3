//! Receive: parsing, and the checks against the queue pair whose failure drops a packet silently.

use ferroce_proto::abi::qpc::{RqCtx, qp_type, state};
use ferroce_proto::wire::bth::pkey_matches;
use ferroce_proto::wire::eth::tag::vid;
use ferroce_proto::wire::ip::GRH_LEN;
use ferroce_proto::wire::{
    BthRepr, Error, Extensions, Headers, Ip, Operation, Packet, eth, ip, ipv4, ipv6, udp,
};

use super::qp::QueuePair;
use super::stats::Stat;
use super::tx::{gid, mac};
use super::{Env, Model, stats};

/// A packet that passed all checks that drop.
pub(super) struct Received<'a> {
    pub(super) bth: BthRepr,
    pub(super) ext: Extensions,
    pub(super) payload: &'a [u8],
    /// The IP header as a UD receive buffer takes it.
    pub(super) grh: [u8; GRH_LEN],
}

impl Model {
    /// A frame has arrived.
    pub(super) fn receive_frame(&mut self, frame: &[u8]) {
        self.env.stats.count(stats::RX_FRAMES);
        self.env.stats.add(stats::RX_BYTES, frame.len() as u64);
        match self.deliver(frame) {
            Err(stats::RX_NOT_ROCE) => self.except(frame),
            Err(reason) => self.env.stats.count(reason),
            Ok(()) => {}
        }
    }

    /// The packet in a frame, or the first reason to drop it as a card that parses frames while they come finds it: too
    /// short to tell, not for this port, not RoCEv2, malformed, to an address that is not in the GID table, ICRC.
    fn screen(&self, frame: &[u8]) -> Result<Packet, Stat> {
        let (link, ethertype) = eth::Repr::parse(frame).map_err(|_| stats::RX_MALFORMED)?;
        let datagram = &frame[link.header_len()..];
        let ip_len = if ethertype == eth::ETHERTYPE_IPV6 {
            ipv6::LEN
        } else {
            ipv4::LEN
        };
        if datagram.len() < ip_len + udp::LEN {
            return Err(stats::RX_MALFORMED);
        }
        let config = &self.env.config;
        let is_group = link.dst.0[0] & 1 == 1;
        let is_own = is_group || link.dst == mac(config.mac);
        if !config.promiscuous && !is_own {
            return Err(stats::RX_WRONG_ADDRESS);
        }
        // What is for another station is none of the transport's: Linux drops it in front of IP (PACKET_OTHERHOST).
        if !is_own || !is_roce(ethertype, datagram) {
            return Err(stats::RX_NOT_ROCE);
        }
        let packet = Packet::parse(frame);
        if !matches!(packet, Ok(_) | Err(Error::Icrc { .. })) {
            return Err(stats::RX_MALFORMED);
        }
        let (ip, _) = Ip::parse(ethertype, datagram).map_err(|_| stats::RX_MALFORMED)?;
        self.env.entry_of(&ip).ok_or(stats::RX_WRONG_ADDRESS)?;
        packet.map_err(|_| stats::RX_ICRC_ERRORS)
    }

    /// Hands a frame to its queue pair, or gives the counter of the reason to drop it.
    fn deliver(&mut self, frame: &[u8]) -> Result<(), Stat> {
        let packet = self.screen(frame)?;
        self.egress.passes(frame);
        let grh = packet.grh(frame);
        let Packet { headers, payload } = packet;
        self.env.stats.count(stats::RX_ROCE_PACKETS);
        let Headers { bth, ext, .. } = headers;
        if bth.opcode.operation() == Operation::Cnp {
            self.receive_cnp(&headers);
            return Ok(());
        }
        self.look_for_mark(&headers);
        let qpn = bth.dest_qp;
        // A RoCEv2 port has no queue pair 0 (A17 CA17-33).
        let qp = self
            .qps
            .get_mut(qpn as usize)
            .filter(|qp| qpn != 0 && qp.rq.configured);
        let qp = qp.ok_or(stats::RX_UNKNOWN_QP)?;
        check(qp, &self.env, &headers)?;
        let received = Received {
            bth,
            ext,
            payload: &frame[payload],
            grh,
        };
        if bth.opcode.is_request() {
            qp.request(&mut self.env, &received);
        } else {
            qp.response(&mut self.env, &received);
        }
        self.schedule(qpn, false);
        Ok(())
    }
}

/// UDP to port 4791 in an IPv4 datagram without options that is no fragment, or right behind an IPv6 header.
fn is_roce(ethertype: u16, datagram: &[u8]) -> bool {
    let (protocol, udp) = match ethertype {
        eth::ETHERTYPE_IPV4 => {
            let is_whole = datagram[6] & 0x3f == 0 && datagram[7] == 0;
            if datagram[0] != 0x45 || !is_whole {
                return false;
            }
            (datagram[9], &datagram[ipv4::LEN..])
        }
        eth::ETHERTYPE_IPV6 if datagram[0] >> 4 == 6 => (datagram[6], &datagram[ipv6::LEN..]),
        _ => return false,
    };
    protocol == ip::PROTOCOL_UDP && udp[2..4] == udp::ROCE_PORT.to_be_bytes()
}

/// State, transport, partition and addresses (IB1 9.6.1, A17.9). Responses pass whatever the state of the responder.
fn check(qp: &QueuePair, env: &Env, headers: &Headers) -> Result<(), Stat> {
    let is_request = headers.bth.opcode.is_request();
    let receives = matches!(
        qp.rq.state,
        state::RTR | state::RTS | state::SQD | state::SQE
    );
    let fault = fault(&qp.rq.ctx, env, headers);
    if !receives && (is_request || fault.is_some()) {
        return Err(stats::RX_QP_STATE);
    }
    if let Some(fault) = fault {
        return Err(fault);
    }
    // A send queue that does not run waits for nothing.
    if !is_request && !matches!(qp.sq.state, state::RTS | state::SQD) {
        return Err(stats::RX_GHOST_ACKS);
    }
    Ok(())
}

/// The first of transport, partition and addresses that is wrong.
fn fault(ctx: &RqCtx, env: &Env, headers: &Headers) -> Option<Stat> {
    let bth = &headers.bth;
    if bth.opcode.class() as u8 != ctx.qp_type {
        return Some(stats::RX_WRONG_TRANSPORT);
    }
    // A datagram may come from any sender that knows the Q_Key (IB1 9.6.1.4), to any address of the port.
    if ctx.qp_type == qp_type::UD {
        if !pkey_matches(bth.pkey, ctx.pkey) {
            return Some(stats::RX_PKEY_VIOLATIONS);
        }
        let deth = headers.ext.deth.expect("a datagram has a DETH");
        return (deth.qkey != ctx.qkey).then_some(stats::RX_QKEY_VIOLATIONS);
    }
    stranger(ctx, env, headers)
}

/// The first of partition and addresses that is not that of a connection.
pub(super) fn stranger(
    ctx: &RqCtx,
    env: &Env,
    Headers { eth, ip, bth, .. }: &Headers,
) -> Option<Stat> {
    if !pkey_matches(bth.pkey, ctx.pkey) {
        return Some(stats::RX_PKEY_VIOLATIONS);
    }
    let is_ours = env.entry_of(ip) == Some(ctx.sgid_index.into());
    let is_abroad = ctx.check_vlan && vid(eth.vlan) != ctx.vlan;
    let is_strange = !is_ours || is_abroad || ip.src_gid() != gid(ctx.remote_gid);
    is_strange.then_some(stats::RX_WRONG_ADDRESS)
}

impl Env {
    /// The lowest entry of the GID table that is the destination of a packet.
    fn entry_of(&self, ip: &Ip) -> Option<usize> {
        let is_v6 = matches!(ip, Ip::V6(_));
        self.gids
            .iter()
            .position(|entry| entry.valid && entry.ipv6 == is_v6 && gid(entry.gid) == ip.dst_gid())
    }
}
