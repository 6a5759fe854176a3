//! Linux soft-RoCE in a guest: Debian's kernel, library of verbs and programs.
//!
//! One boot serves many cells; a guest that is gone is booted anew for the next cell.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use ferroce_guest::{Image, Machine, Qemu, Vm};
use ferroce_system::process::free_port;

use super::{Peer, PeerReport};
use crate::interop::card::{OURS, THEIRS};
use crate::interop::matrix::{Cell, Family, PROGRAMS};
use crate::tools;

/// A boot takes seconds, on a busy machine a minute.
const BOOT: Duration = Duration::from_secs(300);
/// An order takes a second.
const ORDER: Duration = Duration::from_secs(90);
/// Boots that fail one after the other.
const BOOTS: u32 = 2;

/// Where the server of the guest listens, in the guest; the script knows it too.
const PORT: u16 = 18515;
/// MAC address of the interface for TCP.
const TCP_MAC: &str = "02:00:00:00:00:fe";

/// Modules of soft-RoCE over a virtual port.
const SOFT_ROCE: [&str; 5] = [
    "virtio_pci",
    "virtio_net",
    "crc32_generic",
    "ib_uverbs",
    "rdma_rxe",
];
/// Modules of connections by librdmacm, and of loss both ways.
const MODULES: [&str; 6] = [
    "rdma_ucm",
    "sch_netem",
    "sch_ingress",
    "cls_matchall",
    "act_mirred",
    "ifb",
];

/// A guest with soft-RoCE.
pub(in crate::interop) struct Rxe {
    image: Image,
    qemu: Qemu,
    wire: PathBuf,
    our_wire: PathBuf,
    /// Where the guest's server is reached.
    port: u16,
    vm: Option<Vm>,
    failed_boots: u32,
    /// What the kernel says it is.
    version: String,
}

impl Rxe {
    /// Brings what is needed and makes the image; it is booted for the first cell. Sockets are in `folder`, as is `mixed`.
    ///
    /// # Errors
    /// Something is missing and cannot be installed.
    pub(in crate::interop) fn new(folder: &Path) -> Result<Self> {
        let wanted = [
            tools::IPROUTE,
            tools::IBVERBS_UTILS,
            tools::PERFTEST,
            tools::RDMACM_UTILS,
        ];
        tools::ensure_present(&[ferroce_guest::TOOLS, &wanted].concat())?;
        Ok(Self {
            image: image(folder)?,
            qemu: Qemu::debian12()?,
            wire: folder.join("peer.wire"),
            our_wire: folder.join("card.wire"),
            port: free_port().context("no TCP port is free")?,
            vm: None,
            failed_boots: 0,
            version: String::new(),
        })
    }

    fn boot(&mut self) -> Result<Vm> {
        // A socket that a guest left behind would keep the next one from starting.
        let _ = std::fs::remove_file(&self.wire);
        let (wire, our_wire) = (self.wire.display(), self.our_wire.display());
        let port = self.port;
        // With event indices a frame can stay in the guest for ever: when a socket that was full has room again, QEMU
        // writes the index behind which it wants a notice and looks for more frames without a barrier between them.
        let card = |network: &str, mac: &str| {
            format!("virtio-net-pci,netdev={network},mac={mac},romfile=,event_idx=off")
        };
        let machine = Machine::new(&self.qemu, &self.image).args([
            "-netdev".to_owned(),
            format!(
                "dgram,id=wire,local.type=unix,local.path={wire},remote.type=unix,remote.path={our_wire}"
            ),
            "-device".to_owned(),
            card("wire", &THEIRS.mac_text()),
            "-netdev".to_owned(),
            format!("user,id=tcp,hostfwd=tcp:127.0.0.1:{port}-10.0.2.15:{PORT}"),
            "-device".to_owned(),
            card("tcp", TCP_MAC),
        ]);
        let mut vm = machine.start()?;
        vm.wait_for("peer: hello", BOOT)?;
        vm.send(&places())?;
        let line = vm.wait_for("peer: up, ", ORDER)?;
        self.version = line.trim_start_matches("peer: up, ").to_owned();
        Ok(vm)
    }

    /// Gives an order and waits for the answer.
    fn order(&mut self, order: &str, answer: &str) -> Result<Vec<String>> {
        let vm = self.vm.as_mut().context("the guest does not run")?;
        let lines = ask(vm, order, answer);
        if lines.is_err() {
            // What it does now is not known.
            self.vm = None;
        }
        lines.with_context(|| format!("the guest did not do `{order}`"))
    }

    fn running(&mut self) -> Result<&mut Vm> {
        self.vm.as_mut().context("the guest does not run")
    }
}

/// The lines of the guest up to its answer.
fn ask(vm: &mut Vm, order: &str, answer: &str) -> Result<Vec<String>> {
    vm.send(order)?;
    let mut lines = vec![];
    loop {
        let line = vm.wait_for("", ORDER)?;
        if let Some(why) = line.strip_prefix("peer: failed: ") {
            bail!("{why}");
        }
        if line == answer {
            return Ok(lines);
        }
        lines.push(line);
    }
}

/// Addresses, in the order in which the script reads them.
fn places() -> String {
    [
        THEIRS.mac_text(),
        TCP_MAC.into(),
        THEIRS.ipv4.into(),
        THEIRS.ipv6.into(),
        OURS.mac_text(),
        OURS.ipv4.into(),
        OURS.ipv6.into(),
    ]
    .join(" ")
}

/// The guest with all programs; that of the project is in `folder`.
fn image(folder: &Path) -> Result<Image> {
    let mut image = soft_roce()?;
    image.modules(&MODULES)?;
    for program in &PROGRAMS {
        match program.family {
            Family::Mixed => image.program(folder.join(program.name))?,
            _ => image.program(program.name)?,
        };
    }
    for program in ["ip", "tc", "rdma"] {
        image.program(program)?;
    }
    // The C library loads it when a thread ends, as that of rping does.
    let unwinder = "/lib/x86_64-linux-gnu/libgcc_s.so.1";
    image.file(unwinder, unwinder)?;
    image
        .text("/etc/services", "")
        .script(include_str!("rxe.sh"));
    Ok(image)
}

/// A guest with Linux soft-RoCE over a virtual port, and Debian's library for it.
///
/// # Errors
/// Something is missing and cannot be installed.
pub(crate) fn soft_roce() -> Result<Image> {
    tools::ensure_present(&[tools::IBVERBS_PROVIDERS])?;
    let mut image = Image::new()?;
    image.modules(&SOFT_ROCE)?;
    image.file(
        "/etc/libibverbs.d/rxe.driver",
        "/etc/libibverbs.d/rxe.driver",
    )?;
    // The file that the name in rxe.driver stands for has the version of the library's interface in its own.
    let folder = Path::new("/usr/lib/x86_64-linux-gnu/libibverbs");
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let is_rxe = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("librxe-")
    };
    let found = entries.flatten().map(|entry| entry.path()).find(is_rxe);
    let library = found.with_context(|| format!("no librxe in {}", folder.display()))?;
    image.file(&library, &library)?;
    Ok(image)
}

impl Peer for Rxe {
    fn name(&self) -> String {
        let packages =
            "Debian 12's libibverbs, librdmacm, ibverbs-utils, perftest and rdmacm-utils";
        format!("rdma_rxe of {}, {packages}", self.version)
    }

    fn wire(&self) -> &Path {
        &self.wire
    }

    fn our_wire(&self) -> &Path {
        &self.our_wire
    }

    fn prepare(&mut self, cell: &Cell) -> Result<()> {
        if self.vm.is_none() {
            self.failed_boots += 1;
            self.vm = Some(self.boot().context("the guest did not boot")?);
            self.failed_boots = 0;
        }
        // Room for the headers of RoCEv2 over IPv6 (rdma_rxe takes the next MTU below).
        let mtu = if cell.mtu == 4096 { 4500 } else { 1500 };
        self.order(&format!("link {mtu} {}", cell.lost()), "peer: ready")?;
        Ok(())
    }

    fn is_usable(&self) -> bool {
        self.failed_boots < BOOTS
    }

    fn server(&self) -> (&str, u16) {
        ("127.0.0.1", self.port)
    }

    fn listens_at(&self) -> u16 {
        PORT
    }

    fn our_host(&self) -> &str {
        // QEMU's name for the host.
        "10.0.2.2"
    }

    fn start(&mut self, words: &[String], is_server: bool) -> Result<()> {
        let role = if is_server { "server" } else { "client" };
        let order = format!("start {role} {}", words.join(" "));
        self.order(&order, "peer: started").map(drop)
    }

    fn has_ended(&mut self) -> Result<bool> {
        match self.running()?.poll_for("peer: ended") {
            Ok(line) => Ok(line.is_some()),
            Err(error) => {
                self.vm = None;
                Err(error).context("the guest is gone")
            }
        }
    }

    fn finish(&mut self) -> Result<PeerReport> {
        let lines = self.order("finish", "peer: told")?;
        let mut report = PeerReport::default();
        for line in lines {
            if let Some(text) = line.strip_prefix("| ") {
                let _ = writeln!(report.text, "{text}");
            } else if let Some(status) = line.strip_prefix("peer: status ") {
                // "137 killed" is no number.
                report.status = status.parse().ok();
            } else if let Some(counts) = line.strip_prefix("peer: lost ") {
                let counts = counts.split(' ').map(str::parse::<u64>);
                report.lost = counts.sum::<Result<_, _>>().ok();
            } else if let Some(counter) = line.strip_prefix("peer: counter ") {
                let _ = writeln!(report.notes, "{counter}");
            }
        }
        Ok(report)
    }
}
