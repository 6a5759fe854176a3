//! What the library exports: one table of all symbols with their versions, and the functions that only refuse.
//!
//! Programs are bound eagerly, and perftest brings libraries of other cards with it; so every symbol is there that such a
//! program imports.

use std::ffi::{c_int, c_void};

use crate::errno::{Errno, or_null, status};

/// Declares the exported symbols by version. Those after `status` answer `EOPNOTSUPP`, those after `null` set it and
/// return null, those after `nothing` do nothing.
macro_rules! symbols {
    ($($version:literal {
        $(real $($real:ident)+;)?
        $(status $($status:ident)+;)?
        $(null $($null:ident)+;)?
        $(nothing $($nothing:ident)+;)?
    })+) => {
        /// The exported symbols: name and version.
        pub const SYMBOLS: &[(&str, &str)] = &[$(
            $($((stringify!($real), $version),)+)?
            $($((stringify!($status), $version),)+)?
            $($((stringify!($null), $version),)+)?
            $($((stringify!($nothing), $version),)+)?
        )+];

        $($($(
            #[unsafe(no_mangle)]
            extern "C" fn $status() -> c_int {
                status(Err(Errno::OPNOTSUPP))
            }
        )+)?)+
        $($($(
            #[unsafe(no_mangle)]
            extern "C" fn $null() -> *mut c_void {
                or_null(Err(Errno::OPNOTSUPP))
            }
        )+)?)+
        $($($(
            #[unsafe(no_mangle)]
            extern "C" fn $nothing() {}
        )+)?)+
    };
}

symbols! {
    "IBVERBS_1.0" {
        real ibv_create_comp_channel ibv_destroy_comp_channel ibv_get_sysfs_path ibv_rate_to_mult
            ibv_read_sysfs_file mult_to_ibv_rate;
        nothing ibv_copy_path_rec_from_kern ibv_copy_path_rec_to_kern ibv_copy_qp_attr_from_kern;
    }
    "IBVERBS_1.1" {
        real ibv_ack_async_event ibv_ack_cq_events ibv_alloc_pd ibv_close_device ibv_create_ah
            ibv_create_ah_from_wc ibv_create_cq ibv_create_qp ibv_create_srq ibv_dealloc_pd ibv_dereg_mr
            ibv_destroy_ah ibv_destroy_cq ibv_destroy_qp ibv_destroy_srq ibv_event_type_str ibv_fork_init
            ibv_free_device_list ibv_get_async_event ibv_get_cq_event ibv_get_device_guid
            ibv_get_device_list ibv_get_device_name ibv_init_ah_from_wc ibv_modify_qp ibv_modify_srq
            ibv_node_type_str ibv_open_device ibv_port_state_str ibv_query_device ibv_query_gid
            ibv_query_pkey ibv_query_port ibv_query_qp ibv_query_srq ibv_rate_to_mbps ibv_reg_mr
            ibv_rereg_mr ibv_resize_cq ibv_resolve_eth_l2_from_gid ibv_wc_status_str mbps_to_ibv_rate;
        status ibv_attach_mcast ibv_detach_mcast ibv_dofork_range ibv_dontfork_range;
        nothing ibv_copy_ah_attr_from_kern;
    }
    "IBVERBS_1.5" { real ibv_get_pkey_index; }
    "IBVERBS_1.6" { real ibv_qp_to_qp_ex; }
    "IBVERBS_1.7" { real ibv_reg_mr_iova; }
    "IBVERBS_1.8" { real ibv_reg_mr_iova2; }
    "IBVERBS_1.9" { real ibv_get_device_index; }
    "IBVERBS_1.10" {
        real ibv_import_device ibv_import_pd ibv_query_ece ibv_set_ece;
        null ibv_import_mr;
        nothing ibv_unimport_mr ibv_unimport_pd;
    }
    "IBVERBS_1.11" { real _ibv_query_gid_ex _ibv_query_gid_table; }
    "IBVERBS_1.12" { null ibv_reg_dmabuf_mr; }
    "IBVERBS_1.13" {
        real ibv_is_fork_initialized;
        null ibv_import_dm;
        nothing ibv_unimport_dm;
    }
    "IBVERBS_1.14" { real ibv_query_qp_data_in_order; }
    "IBVERBS_PRIVATE_34" {
        real ibv_query_gid_type verbs_allow_disassociate_destroy;
        status __ioctl_final_num_attrs execute_ioctl ibv_cmd_advise_mr ibv_cmd_alloc_dm ibv_cmd_alloc_mw
            ibv_cmd_alloc_pd ibv_cmd_attach_mcast ibv_cmd_close_xrcd ibv_cmd_create_ah
            ibv_cmd_create_counters ibv_cmd_create_cq ibv_cmd_create_cq_ex ibv_cmd_create_flow
            ibv_cmd_create_flow_action_esp ibv_cmd_create_qp ibv_cmd_create_qp_ex ibv_cmd_create_qp_ex2
            ibv_cmd_create_rwq_ind_table ibv_cmd_create_srq ibv_cmd_create_srq_ex ibv_cmd_create_wq
            ibv_cmd_dealloc_mw ibv_cmd_dealloc_pd ibv_cmd_dereg_mr ibv_cmd_destroy_ah
            ibv_cmd_destroy_counters ibv_cmd_destroy_cq ibv_cmd_destroy_flow ibv_cmd_destroy_flow_action
            ibv_cmd_destroy_qp ibv_cmd_destroy_rwq_ind_table ibv_cmd_destroy_srq ibv_cmd_destroy_wq
            ibv_cmd_detach_mcast ibv_cmd_free_dm ibv_cmd_get_context ibv_cmd_modify_cq
            ibv_cmd_modify_flow_action_esp ibv_cmd_modify_qp ibv_cmd_modify_qp_ex ibv_cmd_modify_srq
            ibv_cmd_modify_wq ibv_cmd_open_qp ibv_cmd_open_xrcd ibv_cmd_poll_cq ibv_cmd_post_recv
            ibv_cmd_post_send ibv_cmd_post_srq_recv ibv_cmd_query_context ibv_cmd_query_device_any
            ibv_cmd_query_mr ibv_cmd_query_port ibv_cmd_query_qp ibv_cmd_query_srq ibv_cmd_read_counters
            ibv_cmd_reg_dm_mr ibv_cmd_reg_dmabuf_mr ibv_cmd_reg_mr ibv_cmd_req_notify_cq ibv_cmd_rereg_mr
            ibv_cmd_resize_cq ibv_read_ibdev_sysfs_file;
        null _verbs_init_and_alloc_context verbs_open_device;
        nothing __verbs_log verbs_init_cq verbs_register_driver_34 verbs_set_ops verbs_uninit_context;
    }
    "FERROCE_1" { real ferroce_create_gsi_qp ferroce_try_resolve; }
}

/// A flag of other cards' libraries, which do not run here.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name that the libraries know")]
static verbs_allow_disassociate_destroy: bool = false;

/// The version script for the linker: each symbol at its version, nothing else.
#[must_use]
pub fn version_script() -> String {
    ferroce_cabi::symbols::version_script(SYMBOLS)
}
