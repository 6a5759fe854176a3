//! Devices and contexts.

use std::ffi::{c_char, c_int, c_uint, c_void};

use libc::pthread_mutex_t;

use super::extended::ibv_qp_rate_limit_attr;
use super::{
    ibv_cq, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_device_attr_ex, ibv_mw, ibv_mw_bind,
    ibv_parent_domain_init_attr, ibv_pd, ibv_qp, ibv_qp_init_attr_ex, ibv_recv_wr, ibv_send_wr,
    ibv_srq, ibv_wc, structures, zero,
};

/// A function that no program calls.
type Unused = *const c_void;

structures! { pub(super) LAYOUTS:
    /// A device.
    struct ibv_device {
        _ops: [Unused; 2],
        node_type: c_int,
        transport_type: c_int,
        name: [c_char; 64],
        dev_name: [c_char; 64],
        dev_path: [c_char; 256],
        ibdev_path: [c_char; 256],
    }

    /// What inline functions call.
    struct ibv_context_ops {
        _compat_query_device: Unused,
        _compat_query_port: Unused,
        _compat_alloc_pd: Unused,
        _compat_dealloc_pd: Unused,
        _compat_reg_mr: Unused,
        _compat_rereg_mr: Unused,
        _compat_dereg_mr: Unused,
        alloc_mw: Option<extern "C" fn(*mut ibv_pd, c_int) -> *mut ibv_mw>,
        bind_mw: Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_mw, *mut ibv_mw_bind) -> c_int>,
        dealloc_mw: Option<extern "C" fn(*mut ibv_mw) -> c_int>,
        _compat_create_cq: Unused,
        poll_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int>,
        req_notify_cq: Option<unsafe extern "C" fn(*mut ibv_cq, c_int) -> c_int>,
        _compat_cq_event: Unused,
        _compat_resize_cq: Unused,
        _compat_destroy_cq: Unused,
        _compat_create_srq: Unused,
        _compat_modify_srq: Unused,
        _compat_query_srq: Unused,
        _compat_destroy_srq: Unused,
        post_srq_recv: Option<
            unsafe extern "C" fn(*mut ibv_srq, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int,
        >,
        _compat_create_qp: Unused,
        _compat_query_qp: Unused,
        _compat_modify_qp: Unused,
        _compat_destroy_qp: Unused,
        post_send: Option<
            unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int,
        >,
        post_recv: Option<
            unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> c_int,
        >,
        _compat_create_ah: Unused,
        _compat_destroy_ah: Unused,
        _compat_attach_mcast: Unused,
        _compat_detach_mcast: Unused,
        _compat_async_event: Unused,
    }

    /// An opened device.
    struct ibv_context {
        device: *mut ibv_device,
        ops: ibv_context_ops,
        cmd_fd: c_int,
        async_fd: c_int,
        num_comp_vectors: c_int,
        mutex: pthread_mutex_t,
        abi_compat: *mut c_void,
    }

    /// An opened device with the functions that came later; those not offered are null.
    struct verbs_context {
        query_port: Option<
            unsafe extern "C" fn(*mut ibv_context, u8, *mut ibv_port_attr, usize) -> c_int,
        >,
        advise_mr: Unused,
        alloc_null_mr: Unused,
        read_counters: Unused,
        attach_counters_point_flow: Unused,
        create_counters: Unused,
        destroy_counters: Unused,
        reg_dm_mr: Unused,
        alloc_dm: Unused,
        free_dm: Unused,
        modify_flow_action_esp: Unused,
        destroy_flow_action: Unused,
        create_flow_action_esp: Unused,
        modify_qp_rate_limit:
            Option<unsafe extern "C" fn(*mut ibv_qp, *mut ibv_qp_rate_limit_attr) -> c_int>,
        alloc_parent_domain: Option<
            unsafe extern "C" fn(*mut ibv_context, *mut ibv_parent_domain_init_attr) -> *mut ibv_pd,
        >,
        dealloc_td: Unused,
        alloc_td: Unused,
        modify_cq: Unused,
        post_srq_ops: Unused,
        destroy_rwq_ind_table: Unused,
        create_rwq_ind_table: Unused,
        destroy_wq: Unused,
        modify_wq: Unused,
        create_wq: Unused,
        query_rt_values: Unused,
        create_cq_ex: Option<
            unsafe extern "C" fn(*mut ibv_context, *mut ibv_cq_init_attr_ex) -> *mut ibv_cq_ex,
        >,
        r#priv: Unused,
        query_device_ex: Option<
            unsafe extern "C" fn(
                *mut ibv_context,
                *const c_void,
                *mut ibv_device_attr_ex,
                usize,
            ) -> c_int,
        >,
        ibv_destroy_flow: Unused,
        ABI_placeholder2: Unused,
        ibv_create_flow: Unused,
        ABI_placeholder1: Unused,
        open_qp: Unused,
        create_qp_ex: Option<
            unsafe extern "C" fn(*mut ibv_context, *mut ibv_qp_init_attr_ex) -> *mut ibv_qp,
        >,
        get_srq_num: Unused,
        create_srq_ex: Unused,
        open_xrcd: Unused,
        close_xrcd: Unused,
        _ABI_placeholder3: u64,
        sz: usize,
        context: ibv_context,
    }

    /// Identity and limits of a device.
    struct ibv_device_attr {
        fw_ver: [c_char; 64],
        node_guid: u64,
        sys_image_guid: u64,
        max_mr_size: u64,
        page_size_cap: u64,
        vendor_id: u32,
        vendor_part_id: u32,
        hw_ver: u32,
        max_qp: c_int,
        max_qp_wr: c_int,
        device_cap_flags: c_uint,
        max_sge: c_int,
        max_sge_rd: c_int,
        max_cq: c_int,
        max_cqe: c_int,
        max_mr: c_int,
        max_pd: c_int,
        max_qp_rd_atom: c_int,
        max_ee_rd_atom: c_int,
        max_res_rd_atom: c_int,
        max_qp_init_rd_atom: c_int,
        max_ee_init_rd_atom: c_int,
        atomic_cap: c_int,
        max_ee: c_int,
        max_rdd: c_int,
        max_mw: c_int,
        max_raw_ipv6_qp: c_int,
        max_raw_ethy_qp: c_int,
        max_mcast_grp: c_int,
        max_mcast_qp_attach: c_int,
        max_total_mcast_qp_attach: c_int,
        max_ah: c_int,
        max_fmr: c_int,
        max_map_per_fmr: c_int,
        max_srq: c_int,
        max_srq_wr: c_int,
        max_srq_sge: c_int,
        max_pkeys: u16,
        local_ca_ack_delay: u8,
        phys_port_cnt: u8,
    }

    /// State and limits of a port.
    struct ibv_port_attr {
        state: c_int,
        max_mtu: c_int,
        active_mtu: c_int,
        gid_tbl_len: c_int,
        port_cap_flags: u32,
        max_msg_sz: u32,
        bad_pkey_cntr: u32,
        qkey_viol_cntr: u32,
        pkey_tbl_len: u16,
        lid: u16,
        sm_lid: u16,
        lmc: u8,
        max_vl_num: u8,
        sm_sl: u8,
        subnet_timeout: u8,
        init_type_reply: u8,
        active_width: u8,
        active_speed: u8,
        phys_state: u8,
        link_layer: u8,
        flags: u8,
        port_cap_flags2: u16,
    }

    /// An entry of the GID table.
    struct ibv_gid_entry {
        gid: ibv_gid,
        gid_index: u32,
        port_num: u32,
        gid_type: u32,
        ndev_ifindex: u32,
    }
}

/// A GID. In the header a union of the bytes and two numbers of 8 bytes.
#[repr(C, align(8))]
#[allow(non_camel_case_types, reason = "the name of the header")]
#[derive(Clone, Copy)]
pub struct ibv_gid {
    /// Its bytes.
    pub raw: [u8; 16],
}

zero!(ibv_device, verbs_context, ibv_device_attr, ibv_port_attr);
