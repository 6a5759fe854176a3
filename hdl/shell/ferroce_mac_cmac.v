// 100G port: the CMAC, its bring-up, and the crossings between its clock and the core's.
//
//     s_axis ─► cdc_fifo ─► frame_hold ─► tx_gate ─► mac_skid ─► CMAC ─► qsfp_tx
//     m_axis ◄─ cdc_fifo ◄─ rx_drop ◄──────────────────────────── CMAC ◄─ qsfp_rx
//
// The CMAC has the AXI4-Stream interface (512 bits at 322.265625 MHz, both directions on its transmit clock), RS-FEC, FCS added,
// checked and removed. It takes no gap within a frame and cannot be held up when it receives: see `frame_hold`, `rx_drop`.
// Data of the core has the same form, so that lanes, keep and error marks need no change but what `tx_gate` does.
//
// `arst` resets the core and both queues. The CMAC resets itself when its clocks come and go; that does not touch the queues:
// `rx_drop` and `tx_gate` end what it cut off. `init_clk` has 125 MHz while `init_locked` is high; else the CMAC is in reset, and
// nothing else.
module ferroce_mac_cmac (
    input  wire         core_clk,
    input  wire         core_rst,
    input  wire         arst,
    input  wire         init_clk,
    input  wire         init_locked,

    input  wire         refclk_p,
    input  wire         refclk_n,
    input  wire [3:0]   rx_p,
    input  wire [3:0]   rx_n,
    output wire [3:0]   tx_p,
    output wire [3:0]   tx_n,

    input  wire [511:0] s_axis_tdata,
    input  wire [63:0]  s_axis_tkeep,
    input  wire         s_axis_tlast,
    input  wire         s_axis_tuser,
    input  wire         s_axis_tvalid,
    output wire         s_axis_tready,

    output wire [511:0] m_axis_tdata,
    output wire [63:0]  m_axis_tkeep,
    output wire         m_axis_tlast,
    output wire         m_axis_tuser,
    output wire         m_axis_tvalid,
    input  wire         m_axis_tready,

    // In the domain of core_clk: an eighth of the queue to the core is full.
    output wire         rx_backlog,
    // In the domain of core_clk, a priority each: the peer pauses it; nothing of it is sent any more; the peer is to pause it. The
    // last stays for 16 cycles at least, which are longer than 16 of the CMAC, as it asks for.
    output wire [7:0]   pause_req,
    input  wire [7:0]   pause_ack,
    input  wire [7:0]   pause_send,

    // In the domain of core_clk: {local fault, remote fault, aligned, up}, and the counters of `shell_page`.
    output wire [3:0]   link_status,
    output wire [31:0]  rx_overflow,
    output wire [31:0]  rx_bad,
    output wire [31:0]  tx_dropped
);
    wire         mac_clk;
    wire         mac_rx_rst;
    wire         mac_tx_rst;
    wire         queue_rst;

    wire [511:0] rx_tdata;
    wire [63:0]  rx_tkeep;
    wire         rx_tlast;
    wire         rx_tuser;
    wire         rx_tvalid;
    wire [511:0] tx_tdata;
    wire [63:0]  tx_tkeep;
    wire         tx_tlast;
    wire         tx_tuser;
    wire         tx_tvalid;
    wire         tx_tready;

    wire [8:0]   mac_pause_req;
    wire [7:0]   mac_pause_ack;
    wire [7:0]   mac_pause_send;
    wire         aligned;
    wire         remote_fault;
    wire         local_fault;
    reg          up;
    reg          send_rfi;
    // A pause that stands when the link comes up is sent again.
    reg          was_up;
    reg          resend_pause;

    ferroce_cdc_reset reset_mac (.clk(mac_clk), .arst(arst), .rst(queue_rst));

    // Bring-up: receive at once; until the lanes are aligned without a local fault tell the other side by remote fault
    // indications.
    always @(posedge mac_clk) begin
        up       <= aligned & ~local_fault & ~remote_fault & ~mac_rx_rst & ~mac_tx_rst;
        send_rfi <= ~aligned | local_fault;
        was_up       <= up;
        resend_pause <= up & ~was_up;
    end

    cmac_usplus_0 cmac (
        .gt_ref_clk_p(refclk_p),
        .gt_ref_clk_n(refclk_n),
        .gt_rxp_in(rx_p),
        .gt_rxn_in(rx_n),
        .gt_txp_out(tx_p),
        .gt_txn_out(tx_n),
        .gt_loopback_in(12'd0),
        .gtwiz_reset_tx_datapath(1'b0),
        .gtwiz_reset_rx_datapath(1'b0),
        .gt_txusrclk2(mac_clk),
        .rx_clk(mac_clk),
        .init_clk(init_clk),
        .sys_reset(arst | ~init_locked),
        .core_rx_reset(1'b0),
        .core_tx_reset(1'b0),
        .usr_rx_reset(mac_rx_rst),
        .usr_tx_reset(mac_tx_rst),
        .ctl_rx_enable(1'b1),
        .ctl_rx_force_resync(1'b0),
        .ctl_rx_test_pattern(1'b0),
        .ctl_tx_enable(1'b1),
        .ctl_tx_test_pattern(1'b0),
        .ctl_tx_send_idle(1'b0),
        .ctl_tx_send_rfi(send_rfi),
        .ctl_tx_send_lfi(1'b0),
        .ctl_tx_rsfec_enable(1'b1),
        .ctl_rx_rsfec_enable(1'b1),
        .ctl_rx_rsfec_enable_correction(1'b1),
        .ctl_rx_rsfec_enable_indication(1'b1),
        .ctl_rsfec_ieee_error_indication_mode(1'b0),
        // Pauses by priority (PFC), not of the whole port: to the multicast address, whoever sends them. The core takes the frames
        // and counts their time while the priority is acknowledged; to stop is the engine's.
        .ctl_rx_pause_enable(9'h0ff),
        .ctl_rx_pause_ack({1'b0, mac_pause_ack}),
        .ctl_rx_enable_gcp(1'b0),
        .ctl_rx_check_mcast_gcp(1'b0),
        .ctl_rx_check_ucast_gcp(1'b0),
        .ctl_rx_check_sa_gcp(1'b0),
        .ctl_rx_check_etype_gcp(1'b0),
        .ctl_rx_check_opcode_gcp(1'b0),
        .ctl_rx_enable_pcp(1'b1),
        .ctl_rx_check_mcast_pcp(1'b1),
        .ctl_rx_check_ucast_pcp(1'b0),
        .ctl_rx_check_sa_pcp(1'b0),
        .ctl_rx_check_etype_pcp(1'b1),
        .ctl_rx_check_opcode_pcp(1'b1),
        .ctl_rx_enable_gpp(1'b0),
        .ctl_rx_check_mcast_gpp(1'b0),
        .ctl_rx_check_ucast_gpp(1'b0),
        .ctl_rx_check_sa_gpp(1'b0),
        .ctl_rx_check_etype_gpp(1'b0),
        .ctl_rx_check_opcode_gpp(1'b0),
        .ctl_rx_enable_ppp(1'b1),
        .ctl_rx_check_mcast_ppp(1'b1),
        .ctl_rx_check_ucast_ppp(1'b0),
        .ctl_rx_check_sa_ppp(1'b0),
        .ctl_rx_check_etype_ppp(1'b1),
        .ctl_rx_check_opcode_ppp(1'b1),
        .stat_rx_pause_req(mac_pause_req),
        // Pauses to the peer: the core makes the frames, from address 0, repeats them at half of their time, and ends them with 0
        // quanta.
        .ctl_tx_pause_enable(9'h0ff),
        .ctl_tx_pause_req({1'b0, mac_pause_send}),
        .ctl_tx_resend_pause(resend_pause),
        .ctl_tx_pause_quanta0(16'hffff),
        .ctl_tx_pause_refresh_timer0(16'h7fff),
        .ctl_tx_pause_quanta1(16'hffff),
        .ctl_tx_pause_refresh_timer1(16'h7fff),
        .ctl_tx_pause_quanta2(16'hffff),
        .ctl_tx_pause_refresh_timer2(16'h7fff),
        .ctl_tx_pause_quanta3(16'hffff),
        .ctl_tx_pause_refresh_timer3(16'h7fff),
        .ctl_tx_pause_quanta4(16'hffff),
        .ctl_tx_pause_refresh_timer4(16'h7fff),
        .ctl_tx_pause_quanta5(16'hffff),
        .ctl_tx_pause_refresh_timer5(16'h7fff),
        .ctl_tx_pause_quanta6(16'hffff),
        .ctl_tx_pause_refresh_timer6(16'h7fff),
        .ctl_tx_pause_quanta7(16'hffff),
        .ctl_tx_pause_refresh_timer7(16'h7fff),
        .ctl_tx_pause_quanta8(16'hffff),
        .ctl_tx_pause_refresh_timer8(16'h7fff),
        .stat_rx_aligned(aligned),
        .stat_rx_remote_fault(remote_fault),
        .stat_rx_local_fault(local_fault),
        .rx_axis_tdata(rx_tdata),
        .rx_axis_tkeep(rx_tkeep),
        .rx_axis_tlast(rx_tlast),
        .rx_axis_tuser(rx_tuser),
        .rx_axis_tvalid(rx_tvalid),
        .tx_axis_tdata(tx_tdata),
        .tx_axis_tkeep(tx_tkeep),
        .tx_axis_tlast(tx_tlast),
        .tx_axis_tuser(tx_tuser),
        .tx_axis_tvalid(tx_tvalid),
        .tx_axis_tready(tx_tready),
        .tx_preamblein(56'd0),
        .drp_clk(1'b0),
        .drp_en(1'b0),
        .drp_we(1'b0),
        .drp_addr(10'd0),
        .drp_di(16'd0),
        .core_drp_reset(1'b0)
    );

    // From the MAC: 512 beats of 578 bits, 8.5 RAMB36. From 64 of them on the lossless classes ask for a pause. What comes behind it,
    // 62,854 bytes at most (docs/classes.md), are 1,413 beats of frames of 65 bytes in 5 us, and the core takes 1,257: 156 are more.
    localparam BEAT = 512 + 64 + 2;

    wire [BEAT-1:0] drop_beat;
    wire            drop_valid;
    wire            rx_high;
    wire            rx_part;
    wire            rx_ready;
    wire            overflow;
    wire            bad;

    ferroce_rx_drop #(.WIDTH(512)) rx_drop (
        .clk(mac_clk),
        .mac_rst(mac_rx_rst),
        .queue_rst(queue_rst),
        .s_tdata(rx_tdata),
        .s_tkeep(rx_tkeep),
        .s_tlast(rx_tlast),
        .s_tuser(rx_tuser),
        .s_tvalid(rx_tvalid),
        .m_tdata(drop_beat[511:0]),
        .m_tkeep(drop_beat[575:512]),
        .m_tlast(drop_beat[576]),
        .m_tuser(drop_beat[577]),
        .m_tvalid(drop_valid),
        .m_high(rx_high),
        .overflow(overflow),
        .bad(bad)
    );
    ferroce_cdc_fifo #(.WIDTH(BEAT), .LOG_DEPTH(9), .MARGIN(8), .PART(64)) rx_queue (
        .wr_clk(mac_clk),
        .wr_rst(queue_rst),
        .s_data(drop_beat),
        .s_valid(drop_valid),
        .s_ready(rx_ready),
        .s_high(rx_high),
        .s_part(rx_part),
        .rd_clk(core_clk),
        .rd_rst(core_rst),
        .m_data({m_axis_tuser, m_axis_tlast, m_axis_tkeep, m_axis_tdata}),
        .m_valid(m_axis_tvalid),
        .m_ready(m_axis_tready)
    );

    // To the MAC: a short queue for the crossing, then the store of a frame, as little as it takes: what stands there leaves after
    // a pause too. The engine gives 250 of the 322 beats that the MAC may take: 34 of 151 are ahead, 9.6 KB.
    wire [BEAT-1:0] cross_beat;
    wire            cross_valid;
    wire            cross_ready;
    wire            cross_high;
    wire            cross_part;
    wire [BEAT-1:0] hold_beat;
    wire            hold_valid;
    wire            hold_ready;
    wire [BEAT-1:0] gate_beat;
    wire            gate_valid;
    wire            gate_ready;
    wire            dropped;

    ferroce_cdc_fifo #(.WIDTH(BEAT), .LOG_DEPTH(4), .MARGIN(8)) tx_queue (
        .wr_clk(core_clk),
        .wr_rst(core_rst),
        .s_data({s_axis_tlast, s_axis_tuser, s_axis_tkeep, s_axis_tdata}),
        .s_valid(s_axis_tvalid),
        .s_ready(s_axis_tready),
        .s_high(cross_high),
        .s_part(cross_part),
        .rd_clk(mac_clk),
        .rd_rst(queue_rst),
        .m_data(cross_beat),
        .m_valid(cross_valid),
        .m_ready(cross_ready)
    );
    ferroce_frame_hold #(.WIDTH(BEAT - 1), .LOG_DEPTH(6), .START(34), .FEW(20)) tx_hold (
        .clk(mac_clk),
        .rst(queue_rst),
        .s_data(cross_beat[BEAT-2:0]),
        .s_last(cross_beat[BEAT-1]),
        .s_valid(cross_valid),
        .s_ready(cross_ready),
        .m_data(hold_beat[BEAT-2:0]),
        .m_last(hold_beat[BEAT-1]),
        .m_valid(hold_valid),
        .m_ready(hold_ready)
    );
    ferroce_tx_gate #(.WIDTH(512)) tx_gate (
        .clk(mac_clk),
        .mac_rst(mac_tx_rst),
        .queue_rst(queue_rst),
        .up(up),
        .s_tdata(hold_beat[511:0]),
        .s_tkeep(hold_beat[575:512]),
        .s_tlast(hold_beat[577]),
        .s_tuser(hold_beat[576]),
        .s_tvalid(hold_valid),
        .s_tready(hold_ready),
        .m_tdata(gate_beat[511:0]),
        .m_tkeep(gate_beat[575:512]),
        .m_tlast(gate_beat[577]),
        .m_tuser(gate_beat[576]),
        .m_tvalid(gate_valid),
        .m_tready(gate_ready),
        .dropped(dropped)
    );
    // The MAC's `tx_tready` comes late in its cycle, and all in front would depend on it.
    ferroce_mac_skid #(.WIDTH(BEAT)) tx_skid (
        .clk(mac_clk),
        .rst(mac_tx_rst),
        .s_data(gate_beat),
        .s_valid(gate_valid),
        .s_ready(gate_ready),
        .m_data({tx_tlast, tx_tuser, tx_tkeep, tx_tdata}),
        .m_valid(tx_tvalid),
        .m_ready(tx_tready)
    );

    ferroce_cdc_count #(.WIDTH(32)) count_overflow (
        .src_clk(mac_clk), .src_rst(queue_rst), .event_in(overflow),
        .dst_clk(core_clk), .dst_rst(core_rst), .count(rx_overflow)
    );
    ferroce_cdc_count #(.WIDTH(32)) count_bad (
        .src_clk(mac_clk), .src_rst(queue_rst), .event_in(bad),
        .dst_clk(core_clk), .dst_rst(core_rst), .count(rx_bad)
    );
    ferroce_cdc_count #(.WIDTH(32)) count_dropped (
        .src_clk(mac_clk), .src_rst(queue_rst), .event_in(dropped),
        .dst_clk(core_clk), .dst_rst(core_rst), .count(tx_dropped)
    );
    // Levels, of each priority by itself.
    reg [7:0] pause_ack_q;
    reg [7:0] pause_send_q;
    always @(posedge core_clk) begin
        pause_ack_q  <= pause_ack;
        pause_send_q <= pause_send;
    end

    ferroce_cdc_level #(.WIDTH(8)) pause_in (
        .clk(core_clk),
        .d(mac_pause_req[7:0]),
        .q(pause_req)
    );
    ferroce_cdc_level #(.WIDTH(1)) backlog (
        .clk(core_clk),
        .d(rx_part),
        .q(rx_backlog)
    );
    ferroce_cdc_level #(.WIDTH(8)) pause_out (
        .clk(mac_clk),
        .d(pause_ack_q),
        .q(mac_pause_ack)
    );
    ferroce_cdc_level #(.WIDTH(8)) pause_ask (
        .clk(mac_clk),
        .d(pause_send_q),
        .q(mac_pause_send)
    );
    ferroce_cdc_level #(.WIDTH(4)) status (
        .clk(core_clk),
        .d({local_fault, remote_fault, aligned, up}),
        .q(link_status)
    );

    // The queue from the MAC is never full when `rx_drop` writes: it looks at `s_high`, which leaves room.
    wire unused = &{1'b0, rx_ready, cross_high, cross_part, mac_pause_req[8]};
endmodule
