// A first packet: the engine, host memory behind m_axi, a host on s_axil, and a wire from m_axis_tx to s_axis_rx.
//
// Queue pair 2 writes 128 bytes to queue pair 3 of the same engine, over the wire: request and ACK are printed byte by
// byte, the completion is awaited, and memory is compared. Works with any simulator; two of them:
//
//   $ iverilog -g2005 -I . -s bench -o bench.vvp -c ferroce.f examples/bench.v && vvp bench.vvp
//   $ verilator --binary --timing -j 0 -MAKEFLAGS 'OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0' --output-split 200000 -Wno-fatal -Wno-lint -I. --top-module bench -f ferroce.f examples/bench.v && obj_dir/Vbench
//
// Structures and names are those of host-contract.md; ferroce_abi.vh has their places.
`timescale 1ns / 1ps
`include "ferroce_abi.vh"
`default_nettype none

module bench;
    localparam W = 64;       // data path of the engine in bits
    localparam K = W / 8;
    localparam MEMORY = 65536; // bytes of host memory, from address 0

    // Clock and reset: 250 MHz, reset for 16 cycles at least.
    reg clk = 0, rst = 1;
    always #2 clk = ~clk;

    // ---- Host memory: an AXI4 slave, one burst each way at a time. ----
    reg [7:0] memory [0:MEMORY-1];
    wire [3:0] awid, arid;
    wire [63:0] awaddr, araddr;
    wire [7:0] awlen, arlen;
    wire awvalid, wlast, wvalid, bready, arvalid, rready;
    wire [W-1:0] wdata;
    wire [K-1:0] wstrb;
    reg awready = 0, wready = 0, bvalid = 0, arready = 0, rvalid = 0, rlast = 0;
    reg [3:0] bid = 0, rid = 0;
    reg [W-1:0] rdata = 0;
    reg [63:0] waddr, raddr;
    reg [7:0] rleft;
    integer i;

    // The first address of a burst need not be aligned; strobes say which bytes of a beat are written.
    always @(posedge clk) begin
        if (rst) begin
            awready <= 0; wready <= 0; bvalid <= 0; arready <= 0; rvalid <= 0;
        end else begin
            awready <= !awready && !wready && !bvalid && awvalid;
            if (awvalid && awready) begin
                waddr <= awaddr & ~(K - 1);
                bid <= awid;
                wready <= 1;
            end
            if (wvalid && wready) begin
                for (i = 0; i < K; i = i + 1)
                    if (wstrb[i]) memory[waddr + i] <= wdata[8*i +: 8];
                waddr <= waddr + K;
                if (wlast) begin
                    wready <= 0;
                    bvalid <= 1;
                end
            end
            if (bvalid && bready) bvalid <= 0;

            arready <= !arready && !rvalid && arvalid;
            if (arvalid && arready) begin
                raddr <= (araddr & ~(K - 1)) + K;
                rid <= arid;
                rleft <= arlen;
                rlast <= arlen == 0;
                rvalid <= 1;
                for (i = 0; i < K; i = i + 1) rdata[8*i +: 8] <= memory[(araddr & ~(K - 1)) + i];
            end
            if (rvalid && rready) begin
                rvalid <= !rlast;
                rlast <= rleft == 1;
                rleft <= rleft - 1;
                raddr <= raddr + K;
                for (i = 0; i < K; i = i + 1) rdata[8*i +: 8] <= memory[(raddr + i) % MEMORY];
            end
        end
    end

    // ---- The wire: what leaves comes in again, a cycle later, to the address of the port. ----
    localparam [47:0] MAC = 48'h01_00_00_00_00_02;  // 02:00:00:00:00:01, first byte in the lowest bits
    localparam [47:0] OTHER = 48'h02_00_00_00_00_02; // not the port's own: such frames would not leave
    wire [W-1:0] tx_tdata;
    wire [K-1:0] tx_tkeep;
    wire tx_tlast, tx_tvalid;
    reg [W-1:0] rx_tdata = 0;
    reg [K-1:0] rx_tkeep = 0;
    reg rx_tlast = 0, rx_tvalid = 0, in_frame = 0;
    always @(posedge clk) begin
        rx_tvalid <= tx_tvalid && !rst;
        rx_tdata <= tx_tdata;
        if (!in_frame) rx_tdata[47:0] <= MAC;
        rx_tkeep <= tx_tkeep;
        rx_tlast <= tx_tlast;
        if (tx_tvalid && !rst) begin
            if (!in_frame) $write("frame:");
            for (i = 0; i < K; i = i + 1) if (tx_tkeep[i]) $write(" %02x", tx_tdata[8*i +: 8]);
            if (tx_tlast) $write("\n");
            in_frame <= !tx_tlast;
        end
    end

    // ---- The host's side of BAR0. ----
    reg [21:0] l_awaddr = 0, l_araddr = 0;
    reg [31:0] l_wdata = 0;
    reg l_awvalid = 0, l_wvalid = 0, l_arvalid = 0;
    wire l_awready, l_wready, l_bvalid, l_arready, l_rvalid;
    wire [31:0] l_rdata;

    ferroce dut (
        .clk(clk), .rst(rst),
        .s_axis_rx_tdata(rx_tdata), .s_axis_rx_tkeep(rx_tkeep), .s_axis_rx_tlast(rx_tlast), .s_axis_rx_tuser(1'b0),
        .s_axis_rx_tvalid(rx_tvalid), .s_axis_rx_tready(),
        .m_axis_tx_tdata(tx_tdata), .m_axis_tx_tkeep(tx_tkeep), .m_axis_tx_tlast(tx_tlast), .m_axis_tx_tuser(),
        .m_axis_tx_tvalid(tx_tvalid), .m_axis_tx_tready(1'b1),
        .rx_backlog(1'b0), .pause_req(8'h00), .pause_ack(), .pause_send(),
        .s_axil_awaddr(l_awaddr), .s_axil_awvalid(l_awvalid), .s_axil_awready(l_awready),
        .s_axil_wdata(l_wdata), .s_axil_wstrb(4'hf), .s_axil_wvalid(l_wvalid), .s_axil_wready(l_wready),
        .s_axil_bresp(), .s_axil_bvalid(l_bvalid), .s_axil_bready(1'b1),
        .s_axil_araddr(l_araddr), .s_axil_arvalid(l_arvalid), .s_axil_arready(l_arready),
        .s_axil_rdata(l_rdata), .s_axil_rresp(), .s_axil_rvalid(l_rvalid), .s_axil_rready(1'b1),
        .m_axi_awid(awid), .m_axi_awaddr(awaddr), .m_axi_awlen(awlen), .m_axi_awsize(), .m_axi_awburst(),
        .m_axi_awvalid(awvalid), .m_axi_awready(awready), .m_axi_wdata(wdata), .m_axi_wstrb(wstrb), .m_axi_wlast(wlast),
        .m_axi_wvalid(wvalid), .m_axi_wready(wready), .m_axi_bid(bid), .m_axi_bresp(2'b00), .m_axi_bvalid(bvalid),
        .m_axi_bready(bready), .m_axi_arid(arid), .m_axi_araddr(araddr), .m_axi_arlen(arlen), .m_axi_arsize(),
        .m_axi_arburst(), .m_axi_arvalid(arvalid), .m_axi_arready(arready), .m_axi_rid(rid), .m_axi_rdata(rdata),
        .m_axi_rresp(2'b00), .m_axi_rlast(rlast), .m_axi_rvalid(rvalid), .m_axi_rready(rready),
        .irq_vector(), .irq_valid(), .irq_ready(1'b1)
    );

    task fail(input [8*40-1:0] what);
        begin
            $display("FAILED: %0s at %0t", what, $time);
            $finish;
        end
    endtask

    // Inputs change at the falling edge; `ready` seen there holds at the rising edge that follows.
    reg aw, w;
    task write32(input [31:0] at, input [31:0] data);
        begin
            @(negedge clk);
            l_awaddr = at; l_wdata = data; l_awvalid = 1; l_wvalid = 1;
            while (l_awvalid || l_wvalid) begin
                #1 aw = l_awready; w = l_wready;
                @(negedge clk);
                if (aw) l_awvalid = 0;
                if (w) l_wvalid = 0;
            end
            while (!l_bvalid) @(negedge clk);
            @(negedge clk);
        end
    endtask

    reg [31:0] value;
    task read32(input [31:0] at);
        begin
            @(negedge clk);
            l_araddr = at; l_arvalid = 1;
            #1 aw = l_arready;
            while (!aw) begin @(negedge clk) #1 aw = l_arready; end
            @(negedge clk) l_arvalid = 0;
            while (!l_rvalid) @(negedge clk);
            value = l_rdata;
            @(negedge clk);
        end
    endtask

    // ---- The host contract. ----
    // Sets a field of a structure at `at` in host memory.
    task put(input [31:0] at, input [31:0] lsb, input [31:0] width, input [127:0] bits);
        integer b;
        for (b = 0; b < width; b = b + 1) memory[at + (lsb + b) / 8][(lsb + b) % 8] = bits[b];
    endtask

    function [63:0] get(input [31:0] at, input [31:0] lsb, input [31:0] width);
        integer b;
        begin
            get = 0;
            for (b = 0; b < width; b = b + 1) get[b] = memory[at + (lsb + b) / 8][(lsb + b) % 8];
        end
    endfunction

    // Waits until bit 7 of a byte of host memory, the phase of an entry, is 1.
    task wait_phase(input [31:0] at);
        integer cycles;
        begin
            cycles = 0;
            while (!memory[at][7] && cycles < 20000) begin
                @(negedge clk);
                cycles = cycles + 1;
            end
            if (!memory[at][7]) fail("an entry did not come");
        end
    endtask

    localparam COMMANDS = 'h1000, COMPLETIONS = 'h2000, CQ = 'h3000, CONSUMER = 'h3800, SQ = 'h4000, RQ = 'h5000;
    localparam SOURCE = 'h6000, TARGET = 'h7004, BYTES = 128; // the target is not aligned: AXI strobes at work
    localparam [127:0] GID = {8'd1, 8'd0, 8'd0, 8'd10, 16'hffff, 80'd0}; // ::ffff:10.0.0.1

    integer commands = 0; // given so far; at most 16: one pass over the ring
    reg [31:0] head;
    task new_command(input [31:0] opcode, input [31:0] index);
        begin
            head = COMMANDS + `FERROCE_CMD_BYTES * commands;
            put(head, `FERROCE_CMD_OPCODE, opcode);
            put(head, `FERROCE_CMD_INDEX, index);
        end
    endtask
    task run_command;
        reg [31:0] completion;
        begin
            completion = COMPLETIONS + `FERROCE_CPL_SIZE * commands;
            commands = commands + 1;
            write32(`FERROCE_REG_CMD_PI, commands);
            wait_phase(completion + `FERROCE_CPL_SIZE - 1);
            if (get(completion, `FERROCE_CPL_STATUS) != `FERROCE_CMD_STATUS_OK) fail("a command was refused");
        end
    endtask

    // A reliable connection from RESET to RTS.
    task connect_qp(input [31:0] qpn, input [31:0] peer);
        begin
            new_command(`FERROCE_CMD_MODIFY_QP, qpn);
            put(head, `FERROCE_CMD_QP_SQ, 1);
            put(head, `FERROCE_CMD_QP_AV, 1);
            put(head, `FERROCE_CMD_QP_RQ, 1);
            put(head, `FERROCE_CMD_QP_SQ_STATE, 1);
            put(head, `FERROCE_CMD_SQ_RESET, 1);
            put(head, `FERROCE_CMD_SQ_STATE, `FERROCE_STATE_RTS);
            put(head, `FERROCE_CMD_SQ_PSN, 'h100);
            put(head, `FERROCE_CMD_QP_RQ_STATE, 1);
            put(head, `FERROCE_CMD_RQ_RESET, 1);
            put(head, `FERROCE_CMD_RQ_STATE, `FERROCE_STATE_RTS);
            put(head, `FERROCE_CMD_RQ_PSN, 'h100);
            put(head + 64, `FERROCE_SQ_QP_TYPE, `FERROCE_TYPE_RC);
            put(head + 64, `FERROCE_SQ_MTU, 3);
            put(head + 64, `FERROCE_SQ_SQ_LOG, 4);
            put(head + 64, `FERROCE_SQ_OT_LOG, 4);
            put(head + 64, `FERROCE_SQ_OT_BASE, 16 * qpn);
            put(head + 64, `FERROCE_SQ_RETRY_CNT, 7);
            put(head + 64, `FERROCE_SQ_TIMEOUT, 14);
            put(head + 64, `FERROCE_SQ_PD, 1);
            put(head + 64, `FERROCE_SQ_SQ_BASE, SQ);
            put(head + 128, `FERROCE_AV_DGID, GID);
            put(head + 128, `FERROCE_AV_DMAC, OTHER);
            put(head + 128, `FERROCE_AV_HOP_LIMIT, 64);
            put(head + 128, `FERROCE_AV_UDP_SPORT, 'hc000);
            put(head + 128, `FERROCE_AV_REMOTE_QPN, peer);
            put(head + 128, `FERROCE_AV_PKEY, 'hffff);
            put(head + 192, `FERROCE_RQ_REMOTE_GID, GID);
            put(head + 192, `FERROCE_RQ_RQ_BASE, RQ);
            put(head + 192, `FERROCE_RQ_QP_TYPE, `FERROCE_TYPE_RC);
            put(head + 192, `FERROCE_RQ_MTU, 3);
            put(head + 192, `FERROCE_RQ_REMOTE_WRITE, 1);
            put(head + 192, `FERROCE_RQ_PKEY, 'hffff);
            put(head + 192, `FERROCE_RQ_PD, 1);
            run_command;
        end
    endtask

    integer n;
    initial begin
        for (n = 0; n < MEMORY; n = n + 1) memory[n] = 0;
        for (n = 0; n < BYTES; n = n + 1) memory[SOURCE + n] = 7 * n + 1;
        repeat (20) @(negedge clk);
        rst = 0;

        read32(`FERROCE_REG_MAGIC);
        if (value != `FERROCE_MAGIC_VALUE) fail("MAGIC");
        value = 0;
        while (!(value & `FERROCE_STATUS_READY)) read32(`FERROCE_REG_STATUS);
        $display("ready after %0d cycles", $time / 4);
        write32(`FERROCE_REG_CMD_BASE_LO, COMMANDS);
        write32(`FERROCE_REG_CPL_BASE_LO, COMPLETIONS);
        write32(`FERROCE_REG_CMD_LOG_SIZE, 4);
        write32(`FERROCE_REG_CONTROL, `FERROCE_CONTROL_ENABLE);

        new_command(`FERROCE_CMD_SET_PORT, 0);
        put(head + 64, `FERROCE_PORT_MAC, MAC);
        run_command;
        new_command(`FERROCE_CMD_SET_GID, 0);
        put(head + 64, `FERROCE_GID_GID, GID);
        put(head + 64, `FERROCE_GID_VALID, 1);
        run_command;
        new_command(`FERROCE_CMD_CREATE_CQ, 0);
        put(head + 64, `FERROCE_CQ_BASE, CQ);
        put(head + 64, `FERROCE_CQ_CONSUMER, CONSUMER);
        put(head + 64, `FERROCE_CQ_LOG_SIZE, 4);
        run_command;
        new_command(`FERROCE_CMD_WRITE_MR, 1); // all of memory, key 0x101
        put(head + 64, `FERROCE_MR_LAST, MEMORY - 1);
        put(head + 64, `FERROCE_MR_KEY, 'h101);
        put(head + 64, `FERROCE_MR_PD, 1);
        put(head + 64, `FERROCE_MR_VALID, 1);
        put(head + 64, `FERROCE_MR_LOCAL_WRITE, 1);
        put(head + 64, `FERROCE_MR_REMOTE_WRITE, 1);
        run_command;
        connect_qp(2, 3);
        connect_qp(3, 2);

        put(SQ, `FERROCE_SEND_OPCODE, `FERROCE_WQE_WRITE);
        put(SQ, `FERROCE_SEND_SIGNALED, 1);
        put(SQ, `FERROCE_SEND_SLOTS, 1);
        put(SQ, `FERROCE_SEND_NUM_SGE, 1);
        put(SQ, `FERROCE_SEND_REMOTE_ADDR, TARGET);
        put(SQ, `FERROCE_SEND_RKEY, 'h101);
        put(SQ, `FERROCE_SEND_LENGTH, BYTES);
        put(SQ + `FERROCE_SEND_LIST_AT, `FERROCE_SGE_ADDR, SOURCE);
        put(SQ + `FERROCE_SEND_LIST_AT, `FERROCE_SGE_LENGTH, BYTES);
        put(SQ + `FERROCE_SEND_LIST_AT, `FERROCE_SGE_LKEY, 'h101);
        write32(`FERROCE_SQ_DOORBELL + 8 * 2, 1);
        wait_phase(CQ + `FERROCE_CQE_SIZE - 1);
        if (get(CQ, `FERROCE_CQE_STATUS) != `FERROCE_WC_SUCCESS) fail("the WRITE");
        for (n = 0; n < BYTES; n = n + 1) if (memory[TARGET + n] !== memory[SOURCE + n]) fail("the data differs");
        $display("PASSED: %0d bytes written, completion of queue pair %0d after %0d cycles", BYTES,
                 get(CQ, `FERROCE_CQE_QPN), $time / 4);
        $finish;
    end
endmodule
`default_nettype wire
