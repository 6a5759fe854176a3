//! Two hosts: cards on a wire, and the driver's objects on each.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs::File;
use std::io::BufWriter;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, Result, bail};
use ferroce_driver::{
    Access, Ah, Backend, ConnectAttr, Context, Cq, Destination, Gid, Mac, MrBuf, Path, Pd, Qp,
    RecvWr, Remote, Wc,
};
use ferroce_sim::card::SimCard;
use ferroce_sim::memory::ProcessMemory;
use ferroce_sim::pcapng::Recorder;
use ferroce_sim::scoreboard::Scoreboard;
use ferroce_sim::world::{NodeId, World};

use super::dut::{self, Setup};
use super::options::Transport;
use super::transfer::plan::Plan;
use super::{Job, Options};

/// Send requests that a queue pair holds.
const SEND_WRS: u32 = 64;
/// Q_Key of datagrams.
const QKEY: u32 = 0x0f0e_0c0e;
/// Messages in flight of a queue pair.
pub(super) const WINDOW: u32 = 32;
/// Receives posted on the control queue pair of each host.
pub(super) const RECVS: usize = 32;
/// Bytes of a receive buffer.
pub(super) const RECV_BYTES: usize = 64;
/// Bytes of the region for small messages: a place for WRITEs, one to send from, receive buffers.
const SMALL_BYTES: usize = (2 + RECVS) * RECV_BYTES;
/// Turns of a wait after which the rules are looked at.
const CHECK_TURNS: u64 = 4096;
/// Queue pairs of a host that a verdict describes.
const DESCRIBED: usize = 4;

/// A host.
pub(super) struct Host {
    name: &'static str,
    pub(super) pd: Pd<SimCard>,
    /// Carries small messages and the announcement.
    pub(super) control: Qp<SimCard>,
    /// Carry the file.
    pub(super) qps: Vec<Qp<SimCard>>,
    /// The way to the other host and the queue pairs there, for datagrams.
    ways: Option<(Ah<SimCard>, Vec<u32>)>,
    /// Small messages, see [`Host::recv_at`].
    pub(super) small: MrBuf<SimCard>,
    /// Slots of a send queue.
    slots: u32,
    cq: Cq<SimCard>,
    pub(super) context: Context<SimCard>,
}

impl Host {
    fn open(
        name: &'static str,
        card: SimCard,
        number: u8,
        options: &Options,
        plan: &Plan,
    ) -> Result<Self> {
        let context = Context::open(card)?;
        context.set_mac(Mac([2, 0, 0, 0, 0, number]))?;
        context.set_gid(0, Gid::from(Ipv4Addr::new(10, 0, 0, number)))?;
        let pd = context.alloc_pd();
        let cqes = options.qps * (WINDOW + plan.receives) + WINDOW + RECVS as u32;
        let cq = context.create_cq(cqes)?;
        let small = pd.alloc_mr(SMALL_BYTES, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
        let build = |transport, receives: u32| {
            let builder = Qp::builder(&pd).cq(&cq).max_send_wr(SEND_WRS);
            let builder = builder.max_recv_wr(receives.max(1));
            match transport {
                Transport::Rc => builder.rc(),
                Transport::Uc => builder.uc(),
                Transport::Ud => builder.ud(),
            }
            .build()
        };
        let control = build(Transport::Rc, RECVS as u32)?;
        let file = (0..options.qps).map(|_| build(options.transport, plan.receives));
        let qps: Vec<_> = file.collect::<Result<_, _>>()?;
        Ok(Self {
            name,
            slots: qps[0].send_slots_free(),
            pd,
            control,
            qps,
            ways: None,
            small,
            cq,
            context,
        })
    }

    fn connect(&mut self, peer: &Self, options: &Options) -> Result<()> {
        let attr = ConnectAttr {
            access: Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC,
            path_mtu: options.mtu,
            timeout: options.timeout(),
            min_rnr_timer: 1,
            ..ConnectAttr::default()
        };
        let there = peer.control.endpoint()?;
        self.control.connect_with(&there, &attr)?;
        for (qp, peer) in self.qps.iter_mut().zip(&peer.qps) {
            if options.transport == Transport::Ud {
                qp.open_datagram(QKEY, options.mtu)?;
            } else {
                qp.connect_with(&peer.endpoint()?, &attr)?;
            }
        }
        if options.transport == Transport::Ud {
            let ah = self.pd.create_ah(&Path::new(there.gid, there.mac))?;
            self.ways = Some((ah, peer.qps.iter().map(Qp::qpn).collect()));
        }
        let sges: Vec<_> = (0..RECVS)
            .map(|i| [self.small.sge(Self::recv_at(i)..Self::recv_at(i + 1))])
            .collect();
        let wrs: Vec<_> = (0..)
            .zip(&sges)
            .map(|(i, sges)| RecvWr::new(i, sges))
            .collect();
        self.control.post_recv(&wrs)?;
        Ok(())
    }

    /// The control queue pair and the others.
    fn all(&self) -> impl Iterator<Item = &Qp<SimCard>> {
        std::iter::once(&self.control).chain(&self.qps)
    }

    /// Where the datagrams of queue pair `place` go.
    pub(super) fn destination(&self, place: usize) -> Option<Destination> {
        let (ah, qpns) = self.ways.as_ref()?;
        Some(ah.to(qpns[place], QKEY))
    }

    /// First byte of receive buffer `index` in `small`. WRITEs go to byte 0, SENDs come from
    /// [`RECV_BYTES`].
    pub(super) fn recv_at(index: usize) -> usize {
        (2 + index) * RECV_BYTES
    }

    /// Where the peer writes small messages to.
    pub(super) fn remote(&self) -> Remote {
        Remote {
            addr: self.small.addr(),
            rkey: self.small.rkey(),
        }
    }

    /// The next completion, which must be a success.
    pub(super) fn poll(&mut self) -> Result<Option<Wc>> {
        let mut wcs = [Wc::default()];
        if self.cq.poll(&mut wcs) == 0 {
            return Ok(None);
        }
        let wc = wcs[0].ok().with_context(|| self.name)?;
        Ok(Some(wc))
    }
}

/// What a turn of a wait found.
pub(super) enum Turn {
    /// What was waited for.
    Done,
    /// Some of it.
    Progress,
    /// Nothing.
    Nothing,
}

/// Both hosts: the sender and the receiver of the file.
pub(super) struct Pair<'a> {
    pub(super) hosts: [Host; 2],
    pub(super) world: Rc<RefCell<World>>,
    pub(super) nodes: [NodeId; 2],
    pub(super) scoreboard: Rc<RefCell<Scoreboard>>,
    recorder: Option<Rc<RefCell<Recorder<BufWriter<File>>>>>,
    patience: u64,
    interrupt: &'a AtomicBool,
}

impl<'a> Pair<'a> {
    /// Builds the cards, opens them and connects their queue pairs.
    pub(super) fn open(job: &Job<'a>, plan: &Plan) -> Result<Self> {
        let options = job.options;
        let world = Rc::new(RefCell::new(World::new()));
        let add = |name, seed, wave| {
            let memory = Rc::new(ProcessMemory::new());
            let setup = Setup {
                memory: memory.clone(),
                seed,
                wave,
            };
            let nic = dut::nic(options.dut, setup)?;
            anyhow::Ok((world.borrow_mut().add(name, nic), memory))
        };
        let (sender, sender_memory) = add("sender", options.seed, job.wave)?;
        let (receiver, receiver_memory) = add("receiver", options.seed.wrapping_add(1), None)?;
        let scoreboard = Rc::new(RefCell::new(Scoreboard::new()));
        let recorder = match &job.pcap {
            Some(file) => {
                let file = file.try_clone().context("cannot write the capture")?;
                let recorder =
                    Recorder::new(BufWriter::new(file)).context("cannot write the capture")?;
                Some(Rc::new(RefCell::new(recorder)))
            }
            None => None,
        };
        {
            let mut world = world.borrow_mut();
            world.connect(sender, receiver, options.wire(0), options.wire(1));
            world.observe(scoreboard.clone());
            if let Some(recorder) = &recorder {
                world.observe(recorder.clone());
            }
        }
        let open = |name, node, memory, number| {
            let card = SimCard::new(world.clone(), node, memory);
            Host::open(name, card, number, options, plan).context(name)
        };
        let mut a = open("sender", sender, sender_memory, 1)?;
        let mut b = open("receiver", receiver, receiver_memory, 2)?;
        a.connect(&b, options).context("sender")?;
        b.connect(&a, options).context("receiver")?;
        Ok(Self {
            hosts: [a, b],
            world,
            nodes: [sender, receiver],
            scoreboard,
            recorder,
            patience: options.patience(),
            interrupt: job.interrupt,
        })
    }

    /// Cycles since the start.
    pub(super) fn now(&self) -> u64 {
        self.world.borrow().now()
    }

    /// Sets the cycles from one turn of a wait to the next.
    pub(super) fn set_pace(&self, cycles: u64) {
        self.hosts[0].context.backend().set_relax_cycles(cycles);
    }

    /// Lets time pass until `turn`, which is given the cycle, is done.
    ///
    /// # Errors
    /// Those of `turn`; no progress for too long; a rule broken; an interrupt.
    pub(super) fn until(
        &mut self,
        what: &str,
        mut turn: impl FnMut(&mut [Host; 2], u64) -> Result<Turn>,
    ) -> Result<()> {
        let mut progress = self.now();
        for turns in 1u64.. {
            let now = self.now();
            match turn(&mut self.hosts, now).with_context(|| what.to_owned())? {
                Turn::Done => return Ok(()),
                Turn::Progress => progress = now,
                Turn::Nothing => {}
            }
            let idle = now - progress;
            if idle > self.patience {
                bail!(
                    "{what}: no progress for {idle} cycles, at cycle {now}; {}",
                    self.state()
                );
            }
            if self.interrupt.load(Ordering::Relaxed) {
                bail!("interrupted at cycle {now} during {what}");
            }
            if turns.is_multiple_of(CHECK_TURNS) && !self.broken_rules().is_empty() {
                bail!("stopped at cycle {now} during {what}, as a rule was broken");
            }
            self.hosts[0].context.backend().relax();
        }
        unreachable!("2^64 turns");
    }

    /// Queue pairs with requests outstanding, and what they sent and were sent last.
    fn state(&self) -> String {
        let scoreboard = self.scoreboard.borrow();
        let last = |name: &str, qpn: u32| {
            let packets = scoreboard.packets().get(&(name.to_owned(), qpn));
            packets.and_then(|packets| packets.last()).map_or_else(
                || "nothing".to_owned(),
                |packet| format!("{:?} PSN {:#08x}", packet.opcode, packet.psn.value()),
            )
        };
        let [a, b] = &self.hosts;
        let mut text = String::new();
        for (host, peer) in [(a, b), (b, a)] {
            let outstanding = |qp: &Qp<SimCard>| host.slots - qp.send_slots_free();
            let mut waiting = 0;
            for (qp, other) in host
                .all()
                .zip(peer.all())
                .filter(|(qp, _)| outstanding(qp) > 0)
            {
                waiting += 1;
                if waiting > DESCRIBED {
                    continue;
                }
                let (name, qpn, requests) = (host.name, qp.qpn(), outstanding(qp));
                let (sent, back) = (last(name, other.qpn()), last(peer.name, qpn));
                // Writing to a string does not fail.
                let _ = write!(
                    text,
                    "{name}: queue pair {qpn} has {requests} requests outstanding, it sent {sent} last, its peer {back}; "
                );
            }
            if waiting > DESCRIBED {
                let _ = write!(text, "{}: {} more; ", host.name, waiting - DESCRIBED);
            }
        }
        if text.is_empty() {
            return "no send request is outstanding".into();
        }
        text.truncate(text.len() - 2);
        text
    }

    /// What cards and frames did that they must not.
    fn broken_rules(&self) -> Vec<String> {
        let mut broken = self.world.borrow().failures();
        broken.extend(self.scoreboard.borrow().failures());
        broken
    }

    /// Ends the run and returns what was wrong with it beside `result`. After a failure the cards are
    /// pulled, as they may be stuck.
    pub(super) fn close(self, result: Result<()>) -> Vec<String> {
        if result.is_err() {
            for host in &self.hosts {
                host.context.backend().unplug();
            }
        }
        let Self {
            hosts,
            world,
            scoreboard,
            recorder,
            ..
        } = self;
        // Hands everything back: what the cards do after that is judged too.
        drop(hosts);
        let mut failures: Vec<_> = result.err().map(|e| format!("{e:#}")).into_iter().collect();
        failures.extend(world.borrow().failures());
        let scoreboard = scoreboard.borrow();
        failures.extend(scoreboard.failures());
        let other = scoreboard.other_frames();
        if other > 0 {
            failures.push(format!("{other} frames sent that are not RoCEv2"));
        }
        if let Some(Err(e)) = recorder.map(|recorder| recorder.borrow_mut().finish()) {
            failures.push(format!("cannot write the capture: {e}"));
        }
        failures
    }
}
