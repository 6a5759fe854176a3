//! `ferroce-devinfo`: identity and limits of a card, as `ibv_devinfo`.

use std::io::Write;

use anyhow::Result;
use clap::Parser;
use ferroce_driver::{Backend, Gid, Mac};
use ferroce_proto::abi::pci;

use crate::device::{Device, DeviceArgs};

/// Options.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "ferroce-devinfo",
    version,
    about = "Identity and limits of a card"
)]
pub struct Args {
    /// Card and addresses.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// All limits and the GID table
    #[arg(short, long)]
    pub verbose: bool,
    /// Only the name of the card
    #[arg(short, long)]
    pub list: bool,
}

/// EUI-64 of a MAC address as the tools print a GUID.
fn guid(mac: Mac) -> String {
    let [.., a, b, c, d, e, f, g, h] = Gid::link_local(mac).0;
    format!("{a:02x}{b:02x}:{c:02x}{d:02x}:{e:02x}{f:02x}:{g:02x}{h:02x}")
}

/// Prints what the card is.
///
/// # Errors
/// The output is closed.
pub fn run<B: Backend>(device: &Device<B>, args: &Args, out: &mut impl Write) -> Result<()> {
    if args.list {
        writeln!(out, "1 HCA found:\n\t{}", device.name)?;
        return Ok(());
    }
    let info = device.context.query_device();
    let status = device.context.status();
    let guid = guid(device.context.mac());
    let mut identity: Vec<(&str, String)> = vec![
        ("transport", "InfiniBand (0)".into()),
        (
            "fw_ver",
            format!("{} (build {:08x})", info.abi_version, info.build),
        ),
        ("node_guid", guid.clone()),
        ("sys_image_guid", guid),
        ("vendor_id", format!("{:#06x}", pci::VENDOR)),
        ("vendor_part_id", pci::DEVICE.to_string()),
        ("hw_ver", format!("{:#x}", pci::REVISION)),
        ("phys_port_cnt", "1".into()),
    ];
    if args.verbose {
        let limits: [(&str, u64); 17] = [
            ("max_mr_size", u64::MAX),
            ("max_qp", u64::from(info.max_qp) - 2),
            ("max_qp_wr", info.max_qp_wr.into()),
            ("max_sge", info.max_send_sge.min(info.max_recv_sge).into()),
            ("max_send_sge", info.max_send_sge.into()),
            ("max_recv_sge", info.max_recv_sge.into()),
            ("max_inline_data", info.max_inline_data.into()),
            ("max_cq", info.max_cq.into()),
            ("max_cqe", info.max_cqe.into()),
            ("max_mr", info.max_mr.into()),
            ("max_qp_rd_atom", info.max_rd_atomic.into()),
            ("max_qp_init_rd_atom", info.max_rd_atomic.into()),
            ("max_ah", info.max_ah.into()),
            ("max_srq", info.max_srq.into()),
            ("max_outstanding", info.max_outstanding.into()),
            ("max_eq", info.max_eq.into()),
            ("max_pkeys", 1),
        ];
        identity.extend(limits.map(|(name, value)| (name, value.to_string())));
        identity.push(("features", info.features.to_string()));
        identity.push((
            "data_path",
            format!("{} bits at {} MHz", info.data_width, info.core_clock_mhz),
        ));
    }
    let up = if status.link_up {
        "PORT_ACTIVE (4)"
    } else {
        "PORT_DOWN (1)"
    };
    let mut port: Vec<(&str, String)> = vec![
        ("state", up.into()),
        ("max_mtu", "4096 (5)".into()),
        ("active_mtu", "4096 (5)".into()),
        ("sm_lid", "0".into()),
        ("port_lid", "0".into()),
        ("port_lmc", "0x00".into()),
        ("link_layer", "Ethernet".into()),
    ];
    if args.verbose {
        port.push(("max_msg_sz", format!("{:#x}", info.max_msg_size)));
        port.push(("gid_tbl_len", info.max_gid.to_string()));
        port.push(("mac", device.context.mac().to_string()));
    }
    writeln!(out, "hca_id:\t{}", device.name)?;
    for (name, value) in identity {
        writeln!(out, "\t{:<32}{value}", format!("{name}:"))?;
    }
    writeln!(out, "\t\tport:\t1")?;
    for (name, value) in port {
        writeln!(out, "\t\t\t{:<24}{value}", format!("{name}:"))?;
    }
    if args.verbose {
        for (index, gid) in gids(device) {
            let gid = if gid.is_ipv4() {
                format!("::ffff:{}", gid.ip())
            } else {
                gid.ip().to_string()
            };
            writeln!(out, "\t\t\tGID[{index:3}]:\t\t{gid}, RoCE v2")?;
        }
    }
    writeln!(out)?;
    Ok(())
}

/// Entries of the GID table that are set.
pub(crate) fn gids<B: Backend>(device: &Device<B>) -> impl Iterator<Item = (u8, Gid)> {
    (0..=u8::MAX).filter_map(|index| Some((index, device.context.gid(index)?)))
}
