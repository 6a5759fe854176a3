// Stand-ins for the vendor's blocks, to read a shell where the vendor's tools are not: the ports that the shells use, and no
// behaviour. Not part of a build.
/* verilator lint_off DECLFILENAME */
/* verilator lint_off UNDRIVEN */
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off UNUSEDPARAM */

// Input buffer of a transceiver's reference clock.
(* blackbox *)
module IBUFDS_GTE4 #(
    parameter [1:0] REFCLK_HROW_CK_SEL = 2'b00
) (
    input  wire I,
    input  wire IB,
    input  wire CEB,
    output wire O,
    output wire ODIV2
);
endmodule

// Clock generator.
(* blackbox *)
module MMCME4_BASE #(
    parameter real CLKIN1_PERIOD = 0.0,
    parameter real CLKFBOUT_MULT_F = 5.0,
    parameter real CLKOUT0_DIVIDE_F = 1.0
) (
    input  wire CLKIN1,
    input  wire CLKFBIN,
    input  wire RST,
    input  wire PWRDWN,
    output wire CLKFBOUT,
    output wire CLKOUT0,
    output wire LOCKED
);
endmodule

// Global clock buffer.
(* blackbox *)
module BUFG (
    input  wire I,
    output wire O
);
endmodule

// 100G Ethernet: cmac_usplus with AXI4-Stream, RS-FEC, transceivers inside, no AXI4-Lite.
(* blackbox *)
module cmac_usplus_0 (
    input  wire         gt_ref_clk_p,
    input  wire         gt_ref_clk_n,
    input  wire [3:0]   gt_rxp_in,
    input  wire [3:0]   gt_rxn_in,
    output wire [3:0]   gt_txp_out,
    output wire [3:0]   gt_txn_out,
    input  wire [11:0]  gt_loopback_in,
    input  wire         gtwiz_reset_tx_datapath,
    input  wire         gtwiz_reset_rx_datapath,
    output wire         gt_txusrclk2,
    input  wire         rx_clk,
    input  wire         init_clk,
    input  wire         sys_reset,
    input  wire         core_rx_reset,
    input  wire         core_tx_reset,
    output wire         usr_rx_reset,
    output wire         usr_tx_reset,
    input  wire         ctl_rx_enable,
    input  wire         ctl_rx_force_resync,
    input  wire         ctl_rx_test_pattern,
    input  wire         ctl_tx_enable,
    input  wire         ctl_tx_test_pattern,
    input  wire         ctl_tx_send_idle,
    input  wire         ctl_tx_send_rfi,
    input  wire         ctl_tx_send_lfi,
    input  wire         ctl_tx_rsfec_enable,
    input  wire         ctl_rx_rsfec_enable,
    input  wire         ctl_rx_rsfec_enable_correction,
    input  wire         ctl_rx_rsfec_enable_indication,
    input  wire         ctl_rsfec_ieee_error_indication_mode,
    input  wire [8:0]   ctl_rx_pause_enable,
    input  wire [8:0]   ctl_rx_pause_ack,
    input  wire         ctl_rx_enable_gcp,
    input  wire         ctl_rx_check_mcast_gcp,
    input  wire         ctl_rx_check_ucast_gcp,
    input  wire         ctl_rx_check_sa_gcp,
    input  wire         ctl_rx_check_etype_gcp,
    input  wire         ctl_rx_check_opcode_gcp,
    input  wire         ctl_rx_enable_pcp,
    input  wire         ctl_rx_check_mcast_pcp,
    input  wire         ctl_rx_check_ucast_pcp,
    input  wire         ctl_rx_check_sa_pcp,
    input  wire         ctl_rx_check_etype_pcp,
    input  wire         ctl_rx_check_opcode_pcp,
    input  wire         ctl_rx_enable_gpp,
    input  wire         ctl_rx_check_mcast_gpp,
    input  wire         ctl_rx_check_ucast_gpp,
    input  wire         ctl_rx_check_sa_gpp,
    input  wire         ctl_rx_check_etype_gpp,
    input  wire         ctl_rx_check_opcode_gpp,
    input  wire         ctl_rx_enable_ppp,
    input  wire         ctl_rx_check_mcast_ppp,
    input  wire         ctl_rx_check_ucast_ppp,
    input  wire         ctl_rx_check_sa_ppp,
    input  wire         ctl_rx_check_etype_ppp,
    input  wire         ctl_rx_check_opcode_ppp,
    output wire [8:0]   stat_rx_pause_req,
    input  wire [8:0]   ctl_tx_pause_enable,
    input  wire [8:0]   ctl_tx_pause_req,
    input  wire         ctl_tx_resend_pause,
    input  wire [15:0]  ctl_tx_pause_quanta0,
    input  wire [15:0]  ctl_tx_pause_refresh_timer0,
    input  wire [15:0]  ctl_tx_pause_quanta1,
    input  wire [15:0]  ctl_tx_pause_refresh_timer1,
    input  wire [15:0]  ctl_tx_pause_quanta2,
    input  wire [15:0]  ctl_tx_pause_refresh_timer2,
    input  wire [15:0]  ctl_tx_pause_quanta3,
    input  wire [15:0]  ctl_tx_pause_refresh_timer3,
    input  wire [15:0]  ctl_tx_pause_quanta4,
    input  wire [15:0]  ctl_tx_pause_refresh_timer4,
    input  wire [15:0]  ctl_tx_pause_quanta5,
    input  wire [15:0]  ctl_tx_pause_refresh_timer5,
    input  wire [15:0]  ctl_tx_pause_quanta6,
    input  wire [15:0]  ctl_tx_pause_refresh_timer6,
    input  wire [15:0]  ctl_tx_pause_quanta7,
    input  wire [15:0]  ctl_tx_pause_refresh_timer7,
    input  wire [15:0]  ctl_tx_pause_quanta8,
    input  wire [15:0]  ctl_tx_pause_refresh_timer8,
    output wire         stat_rx_aligned,
    output wire         stat_rx_remote_fault,
    output wire         stat_rx_local_fault,
    output wire [511:0] rx_axis_tdata,
    output wire [63:0]  rx_axis_tkeep,
    output wire         rx_axis_tlast,
    output wire         rx_axis_tuser,
    output wire         rx_axis_tvalid,
    input  wire [511:0] tx_axis_tdata,
    input  wire [63:0]  tx_axis_tkeep,
    input  wire         tx_axis_tlast,
    input  wire         tx_axis_tuser,
    input  wire         tx_axis_tvalid,
    output wire         tx_axis_tready,
    input  wire [55:0]  tx_preamblein,
    input  wire         drp_clk,
    input  wire         drp_en,
    input  wire         drp_we,
    input  wire [9:0]   drp_addr,
    input  wire [15:0]  drp_di,
    input  wire         core_drp_reset
);
endmodule

// PCIe bridge: the QDMA, with slave bridge, AXI4-Lite master and user interrupts.
(* blackbox *)
module qdma_0 (
    input  wire         sys_clk,
    input  wire         sys_clk_gt,
    input  wire         sys_rst_n,
    input  wire [15:0]  pci_exp_rxp,
    input  wire [15:0]  pci_exp_rxn,
    output wire [15:0]  pci_exp_txp,
    output wire [15:0]  pci_exp_txn,
    output wire         axi_aclk,
    output wire         axi_aresetn,
    input  wire         soft_reset_n,
    output wire [31:0]  m_axil_awaddr,
    output wire         m_axil_awvalid,
    input  wire         m_axil_awready,
    output wire [31:0]  m_axil_wdata,
    output wire [3:0]   m_axil_wstrb,
    output wire         m_axil_wvalid,
    input  wire         m_axil_wready,
    input  wire [1:0]   m_axil_bresp,
    input  wire         m_axil_bvalid,
    output wire         m_axil_bready,
    output wire [31:0]  m_axil_araddr,
    output wire         m_axil_arvalid,
    input  wire         m_axil_arready,
    input  wire [31:0]  m_axil_rdata,
    input  wire [1:0]   m_axil_rresp,
    input  wire         m_axil_rvalid,
    output wire         m_axil_rready,
    input  wire [3:0]   s_axib_awid,
    input  wire [63:0]  s_axib_awaddr,
    input  wire [3:0]   s_axib_awregion,
    input  wire [7:0]   s_axib_awlen,
    input  wire [2:0]   s_axib_awsize,
    input  wire [1:0]   s_axib_awburst,
    input  wire         s_axib_awvalid,
    output wire         s_axib_awready,
    input  wire [511:0] s_axib_wdata,
    input  wire [63:0]  s_axib_wstrb,
    input  wire         s_axib_wlast,
    input  wire         s_axib_wvalid,
    output wire         s_axib_wready,
    output wire [3:0]   s_axib_bid,
    output wire [1:0]   s_axib_bresp,
    output wire         s_axib_bvalid,
    input  wire         s_axib_bready,
    input  wire [3:0]   s_axib_arid,
    input  wire [63:0]  s_axib_araddr,
    input  wire [3:0]   s_axib_arregion,
    input  wire [7:0]   s_axib_arlen,
    input  wire [2:0]   s_axib_arsize,
    input  wire [1:0]   s_axib_arburst,
    input  wire         s_axib_arvalid,
    output wire         s_axib_arready,
    output wire [3:0]   s_axib_rid,
    output wire [511:0] s_axib_rdata,
    output wire [1:0]   s_axib_rresp,
    output wire         s_axib_rlast,
    output wire         s_axib_rvalid,
    input  wire         s_axib_rready,
    input  wire         usr_irq_in_vld,
    input  wire [10:0]  usr_irq_in_vec,
    input  wire [7:0]   usr_irq_in_fnc,
    output wire         usr_irq_out_ack,
    output wire         usr_irq_out_fail
);
endmodule
