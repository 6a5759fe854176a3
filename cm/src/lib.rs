//! The protocol of the communication manager (IB1 chapter 12) over RoCEv2: how two hosts agree on a connection, as
//! librdmacm and the kernel's `rdma_cm` do.
//!
//! [`Manager`] has no device, no clock and no thread. A program that has them gives it the MADs that its queue pair 1
//! receives ([`Manager::receive`]) and the time ([`Manager::tick`]), and does what [`Manager::output`] names: sends a MAD, or
//! acts on an event. `librdmacm.so.1` of this project is such a program.
//!
//! ```
//! use std::net::{IpAddr, Ipv4Addr};
//! use std::time::Duration;
//!
//! use ferroce_cm::{Address, CmEvent, Family, IpHeader, Listener, Manager, Output, PortSpace, Rep, Req, gid};
//!
//! let now = Duration::ZERO;
//! let ips = [1, 2].map(|last| IpAddr::from(Ipv4Addr::new(10, 0, 0, last)));
//! let peers = ips.map(|ip| Address { sgid_index: 0, gid: gid(ip) });
//! let (mut client, mut server) = (Manager::new(1, 100), Manager::new(2, 200));
//!
//! server.listen(Listener {
//!     key: 7,
//!     space: PortSpace::Tcp,
//!     port: 4420,
//!     address: None,
//!     family: Family::Both,
//! });
//! let mut private = [0; 92];
//! IpHeader { port: 40000, from: ips[0], to: ips[1] }.emit(&mut private);
//! let service = PortSpace::Tcp.service(4420);
//! let ends = (gid(ips[0]), gid(ips[1]));
//! let req = Req { service, qpn: 17, psn: 5, local_gid: ends.0, remote_gid: ends.1, private, ..Req::default() };
//! client.connect(now, peers[1], req);
//!
//! // What queue pair 1 of each would carry.
//! let Some(Output::Send(_, mad)) = client.output() else { panic!("a REQ") };
//! server.receive(now, peers[0], &mad[..]);
//! let Some(Output::Event(id, CmEvent::ReqReceived(7, req, from))) = server.output() else { panic!("it came") };
//! assert_eq!((req.qpn, from.port), (17, 40000));
//! server.accept(now, id, Rep { qpn: 18, psn: 6, ..Rep::default() })?;
//! let Some(Output::Send(_, mad)) = server.output() else { panic!("a REP") };
//! client.receive(now, peers[1], &mad[..]);
//! let Some(Output::Event(id, CmEvent::RepReceived(rep))) = client.output() else { panic!("it came") };
//! assert_eq!((rep.qpn, rep.psn), (18, 6));
//! // The queue pair is connected now.
//! client.establish(id)?;
//! # Ok::<(), ferroce_cm::WrongState>(())
//! ```

mod mad;
mod manager;

pub use mad::*;
pub use manager::*;
