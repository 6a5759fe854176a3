// mac_cmac with a CMAC that behaves: `+seed=N`. Prints PASS or stops with an error.
//
// The CMAC of this file sends frames at a beat a cycle that nobody can hold up and takes frames with pauses between and within,
// at the line's rate. Checked: a frame from the line arrives whole, once, in order, with its mark, or is dropped and counted; a
// frame to the line begins and ends without a gap, padded with zeros, or is dropped and counted while the link is down; a
// reset of the CMAC in the middle of both leaves nothing standing. A frame that the core begins begins on the wire in time for a pause,
// and the wire does not wait for frames.
`timescale 1ps / 1ps

module cmac_usplus_0 (
    input  wire gt_ref_clk_p, gt_ref_clk_n, input wire [3:0] gt_rxp_in, gt_rxn_in, output wire [3:0] gt_txp_out, gt_txn_out,
    input  wire [11:0] gt_loopback_in, input wire gtwiz_reset_tx_datapath, gtwiz_reset_rx_datapath,
    output bit gt_txusrclk2, input wire rx_clk, init_clk, sys_reset, core_rx_reset, core_tx_reset,
    output bit usr_rx_reset, usr_tx_reset,
    input  wire ctl_rx_enable, ctl_rx_force_resync, ctl_rx_test_pattern, ctl_tx_enable, ctl_tx_test_pattern,
    input  wire ctl_tx_send_idle, ctl_tx_send_rfi, ctl_tx_send_lfi, ctl_tx_rsfec_enable, ctl_rx_rsfec_enable,
    input  wire ctl_rx_rsfec_enable_correction, ctl_rx_rsfec_enable_indication, ctl_rsfec_ieee_error_indication_mode,
    input  wire [8:0] ctl_rx_pause_enable, ctl_rx_pause_ack, output bit [8:0] stat_rx_pause_req,
    input  wire [8:0] ctl_tx_pause_enable, ctl_tx_pause_req, input wire ctl_tx_resend_pause,
    input  wire [15:0] ctl_tx_pause_quanta0, ctl_tx_pause_quanta1, ctl_tx_pause_quanta2, ctl_tx_pause_quanta3, ctl_tx_pause_quanta4, ctl_tx_pause_quanta5, ctl_tx_pause_quanta6, ctl_tx_pause_quanta7, ctl_tx_pause_quanta8,
    input  wire [15:0] ctl_tx_pause_refresh_timer0, ctl_tx_pause_refresh_timer1, ctl_tx_pause_refresh_timer2, ctl_tx_pause_refresh_timer3, ctl_tx_pause_refresh_timer4, ctl_tx_pause_refresh_timer5, ctl_tx_pause_refresh_timer6, ctl_tx_pause_refresh_timer7, ctl_tx_pause_refresh_timer8,
    input  wire ctl_rx_enable_gcp, ctl_rx_check_mcast_gcp, ctl_rx_check_ucast_gcp, ctl_rx_check_sa_gcp, ctl_rx_check_etype_gcp, ctl_rx_check_opcode_gcp,
    input  wire ctl_rx_enable_pcp, ctl_rx_check_mcast_pcp, ctl_rx_check_ucast_pcp, ctl_rx_check_sa_pcp, ctl_rx_check_etype_pcp, ctl_rx_check_opcode_pcp,
    input  wire ctl_rx_enable_gpp, ctl_rx_check_mcast_gpp, ctl_rx_check_ucast_gpp, ctl_rx_check_sa_gpp, ctl_rx_check_etype_gpp, ctl_rx_check_opcode_gpp,
    input  wire ctl_rx_enable_ppp, ctl_rx_check_mcast_ppp, ctl_rx_check_ucast_ppp, ctl_rx_check_sa_ppp, ctl_rx_check_etype_ppp, ctl_rx_check_opcode_ppp,
    output bit stat_rx_aligned, stat_rx_remote_fault, stat_rx_local_fault,
    output bit [511:0] rx_axis_tdata, output bit [63:0] rx_axis_tkeep, output bit rx_axis_tlast, rx_axis_tuser, rx_axis_tvalid,
    input  wire [511:0] tx_axis_tdata, input wire [63:0] tx_axis_tkeep, input wire tx_axis_tlast, tx_axis_tuser, tx_axis_tvalid,
    output bit tx_axis_tready, input wire [55:0] tx_preamblein,
    input  wire drp_clk, drp_en, drp_we, input wire [9:0] drp_addr, input wire [15:0] drp_di, input wire core_drp_reset
);
    always #1551 gt_txusrclk2 = !gt_txusrclk2;
endmodule

module mac_tb;
    int unsigned seed = 1;
    bit core_clk, init_clk, arst, init_locked;
    always #2000 core_clk = !core_clk;
    always #4000 init_clk = !init_clk;

    wire core_rst;
    ferroce_cdc_reset core_reset (.clk(core_clk), .arst(arst), .rst(core_rst));

    logic [511:0] s_axis_tdata, m_axis_tdata;
    logic [63:0]  s_axis_tkeep, m_axis_tkeep;
    logic s_axis_tlast, s_axis_tuser, s_axis_tvalid, s_axis_tready;
    logic m_axis_tlast, m_axis_tuser, m_axis_tvalid, m_axis_tready;
    wire [3:0]  link_status, tx_p, tx_n;
    wire [7:0]  pause_req;
    wire        rx_backlog;
    logic [7:0] pause_ack = 0, pause_send = 0;
    wire [31:0] rx_overflow, rx_bad, tx_dropped;
    ferroce_mac_cmac dut (.*, .refclk_p(1'b0), .refclk_n(1'b1), .rx_p(4'd0), .rx_n(4'd0));

    task automatic fail(string what);
        $display("FAIL at %0t: %s", $time, what);
        $fatal(1);
    endtask

    // A frame is known by its number: byte i of frame n is this.
    function automatic logic [7:0] byte_of(int unsigned n, int unsigned i);
        return i < 4 ? 8'(n >> (8 * i)) : 8'(n * 7 + i);
    endfunction
    function automatic logic [511:0] beat_of(int unsigned n, int unsigned at, int unsigned len);
        for (int i = 0; i < 64; i++) beat_of[8*i+:8] = at + i < len ? byte_of(n, at + i) : 8'h5a;
    endfunction
    function automatic logic [63:0] keep_of(int unsigned at, int unsigned len);
        return len - at >= 64 ? '1 : (64'd1 << (len - at)) - 64'd1;
    endfunction
    function automatic int unsigned some_length();
        return ($urandom & 3) == 0 ? $urandom_range(65, 9000) : $urandom_range(40, 300);
    endfunction

    wire mac_clk = dut.mac_clk;
    int unsigned lengths[int unsigned];
    bit marks[int unsigned];

    // The line's side: frames in; all have one length, or any.
    int unsigned rx_fixed, rx_sent, rx_at, rx_len, rx_cut;
    // At 100 Gb/s 38.8 bytes a cycle, and 24 more a frame than it has here; else a beat a cycle.
    bit rx_on, rx_line;
    int rx_credit;
    always @(posedge mac_clk) begin
        dut.cmac.rx_axis_tvalid <= 0;
        if (rx_credit < 640) rx_credit += 388;
        if (dut.cmac.usr_rx_reset) begin
            // one that is dropped is counted already; the beat that is shown is lost too
            if ((rx_at != 0 || dut.cmac.rx_axis_tvalid) && !(dut.rx_drop.midway && dut.rx_drop.dropping)) rx_cut++;
            rx_at = 0;
        end else if ((rx_at != 0 || rx_on) && (rx_credit >= 0 || !rx_line)) begin
            if (rx_at == 0) begin
                rx_sent++;
                rx_len = rx_fixed != 0 ? rx_fixed : some_length();
                lengths[rx_sent] = rx_len;
                marks[rx_sent] = ($urandom & 15) == 0;
                rx_credit -= 240;
            end
            rx_credit -= 10 * (rx_len - rx_at >= 64 ? 64 : rx_len - rx_at);
            dut.cmac.rx_axis_tvalid <= 1;
            dut.cmac.rx_axis_tdata <= beat_of(rx_sent, rx_at, rx_len);
            dut.cmac.rx_axis_tkeep <= keep_of(rx_at, rx_len);
            dut.cmac.rx_axis_tlast <= rx_at + 64 >= rx_len;
            dut.cmac.rx_axis_tuser <= rx_at + 64 >= rx_len && marks[rx_sent];
            rx_at = rx_at + 64 >= rx_len ? 0 : rx_at + 64;
        end
    end

    // The core's side: frames out.
    int unsigned rx_good, rx_spoilt, rx_last, rx_got, rx_of, rx_pull = 8;
    always @(posedge core_clk) begin
        m_axis_tready <= ($urandom & 7) < rx_pull;
        if (core_rst) rx_got = 0;
        else if (m_axis_tvalid && m_axis_tready) begin
            if (rx_got == 0) begin
                rx_of = m_axis_tdata[31:0];
                if (rx_of <= rx_last || rx_of > rx_sent) fail($sformatf("frame %0d after %0d", rx_of, rx_last));
                rx_last = rx_of;
            end
            if (!(m_axis_tlast && m_axis_tuser)) begin
                if (m_axis_tkeep !== keep_of(rx_got, lengths[rx_of])) fail("keep");
                if (m_axis_tdata !== beat_of(rx_of, rx_got, lengths[rx_of])) fail("data");
                if (m_axis_tlast != (rx_got + 64 >= lengths[rx_of])) fail("last");
            end
            rx_got += 64;
            if (m_axis_tlast) begin
                if (m_axis_tuser) rx_spoilt++;
                else begin
                    if (marks[rx_of]) fail("a bad frame came as a good one");
                    rx_good++;
                end
                rx_got = 0;
            end
        end
    end

    // The core's side: frames to the line.
    int unsigned tx_sent, tx_at, tx_len, tx_push = 8;
    int unsigned tx_lengths[int unsigned];
    // Of frames that all have one length; else any.
    int unsigned tx_fixed;
    localparam int unsigned FIXED[6] = '{60, 65, 1082, 4158, 9000, 0};
    time tx_began[int unsigned];
    bit tx_on, s_first;
    always @(posedge core_clk) begin
        if (s_axis_tvalid && s_axis_tready && s_first) tx_began[s_axis_tdata[31:0]] = $time;
        if (core_rst) begin
            s_axis_tvalid <= 0;
            tx_at = 0;
        end else if (!s_axis_tvalid || s_axis_tready) begin
            s_axis_tvalid <= 0;
            if (tx_at != 0 || (tx_on && ($urandom & 7) < tx_push)) begin
                if (tx_at == 0) begin
                    tx_sent++;
                    tx_len = tx_fixed != 0 ? tx_fixed : some_length();
                    tx_lengths[tx_sent] = tx_len;
                end
                s_axis_tvalid <= 1;
                s_first <= tx_at == 0;
                s_axis_tdata <= beat_of(tx_sent, tx_at, tx_len);
                s_axis_tkeep <= keep_of(tx_at, tx_len);
                s_axis_tlast <= tx_at + 64 >= tx_len;
                s_axis_tuser <= 0;
                tx_at = tx_at + 64 >= tx_len ? 0 : tx_at + 64;
            end
        end
    end

    // The line's side: frames out.
    int unsigned tx_good, tx_spoilt, tx_last, tx_got, tx_of, tx_pull = 8;
    // At 100 Gb/s, as above: the MAC holds a beat or so.
    bit tx_line;
    int tx_credit;
    // Since it was cleared: bytes of the line, at most, from the beginning of a frame in the core to that on the line; bytes sent.
    int unsigned tx_late, tx_bytes;
    always @(posedge mac_clk) begin
        if (tx_credit < 640) tx_credit += 388;
        if (dut.cmac.tx_axis_tvalid && dut.cmac.tx_axis_tready) begin
            if (tx_got == 0 && tx_began.exists(dut.cmac.tx_axis_tdata[31:0]) != 0) begin
                automatic int unsigned late = 32'(($time - tx_began[dut.cmac.tx_axis_tdata[31:0]]) / 80);
                if (late > tx_late) tx_late = late;
            end
            tx_bytes += $countones(dut.cmac.tx_axis_tkeep) + (dut.cmac.tx_axis_tlast ? 24 : 0);
            tx_credit -= 10 * ($countones(dut.cmac.tx_axis_tkeep) + (dut.cmac.tx_axis_tlast ? 24 : 0));
        end
        dut.cmac.tx_axis_tready <= !dut.cmac.usr_tx_reset && (tx_line ? tx_credit >= 0 : ($urandom & 7) < tx_pull);
        if (dut.cmac.usr_tx_reset) tx_got = 0;
        else begin
            if (tx_got != 0 && dut.cmac.tx_axis_tready && !dut.cmac.tx_axis_tvalid)
                fail("a gap within a frame");
            if (dut.cmac.tx_axis_tvalid && dut.cmac.tx_axis_tready) begin
                automatic int unsigned len;
                if (tx_got == 0 && !(dut.cmac.tx_axis_tlast && dut.cmac.tx_axis_tuser)) begin
                    tx_of = dut.cmac.tx_axis_tdata[31:0];
                    if (tx_of <= tx_last || tx_of > tx_sent) fail($sformatf("sent frame %0d after %0d", tx_of, tx_last));
                    tx_last = tx_of;
                end
                len = tx_lengths[tx_of];
                if (!(dut.cmac.tx_axis_tlast && dut.cmac.tx_axis_tuser)) begin
                    for (int i = 0; i < 64; i++) begin
                        automatic logic [7:0] want = tx_got + i < len ? byte_of(tx_of, tx_got + i) : 8'd0;
                        automatic logic kept = tx_got + i < (len < 60 ? 60 : len);
                        if (dut.cmac.tx_axis_tkeep[i] !== kept) fail("keep of a frame sent");
                        if (dut.cmac.tx_axis_tdata[8*i+:8] !== want) fail("data of a frame sent");
                    end
                    if (dut.cmac.tx_axis_tlast != (tx_got + 64 >= len)) fail("last of a frame sent");
                end
                tx_got += 64;
                if (dut.cmac.tx_axis_tlast) begin
                    if (dut.cmac.tx_axis_tuser) tx_spoilt++;
                    else tx_good++;
                    tx_got = 0;
                end
            end
        end
    end

    // A pause that stands is sent again once each time the link comes up.
    int unsigned ups, resends;
    bit was_up;
    always @(posedge mac_clk) begin
        if (dut.up && !was_up) ups++;
        was_up = dut.up;
        if (dut.cmac.ctl_tx_resend_pause) resends++;
    end

    task automatic settle(string when_);
        rx_on = 0;
        tx_on = 0;
        rx_pull = 8;
        tx_pull = 8;
        tx_push = 8;
        #8000000;
        if (m_axis_tvalid || s_axis_tvalid || dut.cmac.tx_axis_tvalid) fail({when_, ": something stands still"});
        // A frame that a reset of the MAC cut off is in both counts of the core's side, never in the counters of the MAC.
        if (rx_good + rx_bad + rx_overflow + rx_cut != rx_sent)
            fail($sformatf("%s: %0d good, %0d bad, %0d overflow, %0d cut of %0d", when_, rx_good, rx_bad, rx_overflow, rx_cut, rx_sent));
        if (rx_spoilt < rx_bad) fail({when_, ": bad frames came through as good ones"});
        if (tx_good + tx_dropped != tx_sent)
            fail($sformatf("%s: %0d sent, %0d dropped of %0d", when_, tx_good, tx_dropped, tx_sent));
    endtask

    initial begin
        void'($value$plusargs("seed=%d", seed));
        void'($urandom(seed));
        arst = 1;
        dut.cmac.usr_rx_reset = 1;
        dut.cmac.usr_tx_reset = 1;
        #100000 arst = 0;
        // Without its clock for the start the CMAC is in reset, and it alone.
        #50000;
        if (!dut.cmac.sys_reset || core_rst || dut.queue_rst) fail("resets before the clock");
        init_locked = 1;
        #50000 @(negedge mac_clk);
        if (dut.cmac.sys_reset) fail("the CMAC stays in reset");
        dut.cmac.usr_rx_reset = 0;
        dut.cmac.usr_tx_reset = 0;
        #20000 dut.cmac.stat_rx_aligned = 1;
        #100000;
        if (link_status !== 4'b0011) fail("link status");

        // Pauses cross, each priority by itself; that of the whole port does not.
        dut.cmac.stat_rx_pause_req = 9'h1a5;
        pause_ack = 8'h5a;
        pause_send = 8'h96;
        #40000;
        if (pause_req !== 8'ha5 || dut.cmac.ctl_rx_pause_ack !== 9'h05a) fail("pauses");
        if (dut.cmac.ctl_rx_pause_enable !== 9'h0ff || !dut.cmac.ctl_rx_enable_ppp) fail("pauses are not taken");
        if (dut.cmac.ctl_tx_pause_req !== 9'h096 || dut.cmac.ctl_tx_pause_enable !== 9'h0ff) fail("pauses are not sent");
        dut.cmac.stat_rx_pause_req = 0;
        pause_ack = 0;
        pause_send = 0;

        // The line's rate, then all it can do, then a core that stands still at times.
        for (int i = 0; i < 6; i++) begin
            rx_on = 1;
            tx_on = 1;
            rx_line = i < 2;
            rx_pull = i < 3 ? 8 : $urandom_range(1, 6);
            tx_pull = i == 0 ? 8 : $urandom_range(3, 8);
            tx_push = i < 3 ? 8 : $urandom_range(1, 8);
            #20000000 settle("traffic");
            if (i == 1 && rx_overflow != 0) fail("overflow at the line's rate");
        end
        if (rx_overflow == 0) fail("no overflow although the core stood still");
        if (rx_bad == 0 || tx_dropped != 0) fail("marks");

        // A peer that is asked for a pause at half of the queue stops within 62,854 bytes: nothing is lost of the frames that the
        // core takes slowest.
        for (int i = 0; i < 12; i++) begin
            automatic int unsigned lost = rx_overflow;
            rx_fixed = 65 + i;
            rx_line = 1;
            rx_on = 1;
            if (i < 11) wait (rx_backlog);
            else #20000000;
            #5028320 rx_on = 0;
            #4000000;
            if (rx_backlog) fail("a backlog of nothing");
            if (rx_overflow != lost) fail($sformatf("frames of %0d bytes are lost", rx_fixed));
        end
        rx_fixed = 0;
        rx_line = 0;
        settle("short frames");

        // Of a frame that begins when a pause comes, 802.1Qbb lets 3840 bytes pass before; the pause takes some 350 to the queues.
        for (int i = 0; i < 6; i++) begin
            tx_fixed = FIXED[i];
            tx_line = 1;
            tx_on = 1;
            #4000000 tx_late = 0;
            tx_bytes = 0;
            #8000000;
            $display("frames of %0d bytes begin %0d bytes late, %0d of 100000 bytes", tx_fixed, tx_late, tx_bytes);
            if (tx_late > 3840 - 350) fail("a pause comes too late");
            if (tx_bytes < (tx_fixed == 65 ? 88000 : 99000)) fail("the line waits");
            tx_line = 0;
            settle("late");
        end

        // The link goes, in the middle of frames; nothing waits for it.
        for (int i = 0; i < 6; i++) begin
            // The last times the lanes stay aligned.
            automatic bit faulty = i >= 4;
            automatic int unsigned already = tx_dropped;
            rx_on = 1;
            tx_on = 1;
            #3000000 @(negedge mac_clk) dut.cmac.stat_rx_aligned = faulty;
            dut.cmac.stat_rx_local_fault = faulty;
            tx_pull = i[0] ? 0 : 8;
            #3000000;
            if (link_status[0] || tx_dropped == already) fail("frames wait for a link");
            if (!dut.cmac.ctl_tx_send_rfi) fail("the other side is not told");
            if (i[1]) begin
                // A reset of the MAC as well.
                @(negedge mac_clk);
                dut.cmac.usr_rx_reset = 1;
                dut.cmac.usr_tx_reset = 1;
                #300000 @(negedge mac_clk);
                dut.cmac.usr_rx_reset = 0;
                dut.cmac.usr_tx_reset = 0;
            end
            tx_pull = 8;
            dut.cmac.stat_rx_aligned = 1;
            dut.cmac.stat_rx_local_fault = 0;
            #3000000 settle("link");
        end
        if (rx_cut == 0 || tx_spoilt == 0) fail("no frame was cut");
        if (ups < 2 || resends != ups) fail($sformatf("%0d pauses sent again, %0d times up", resends, ups));

        // A reset of the core in the middle of frames: afterwards frames are whole again.
        rx_on = 1;
        tx_on = 1;
        #3000000 arst = 1;
        #100000 arst = 0;
        #3000000;
        rx_on = 0;
        tx_on = 0;
        #8000000;
        if (m_axis_tvalid || dut.cmac.tx_axis_tvalid || rx_last != rx_sent || tx_last != tx_sent) fail("reset");
        $display("PASS received %0d, sent %0d", rx_good, tx_good);
        $finish;
    end
endmodule
