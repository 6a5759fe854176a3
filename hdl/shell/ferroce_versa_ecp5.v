// The engine on an ECP5-5G Versa: one RGMII port, a serial line as host, memory on the chip. Wiring and address decoding.
//
//     uart ─► uart_bus ─┬─ 0x000000 ─► ferroce ◄═► mac_1g ◄─► rgmii_ecp5 ◄─► PHY
//                       ├─ 0x400000 ─► axi_ram ◄═ m_axi
//                       └─ 0x600000: [31:16] interrupts, [15:8] frames lost for want of room, [7:0] bad frames
//
// There is no block for PCIe in this FPGA, only transceivers, so the card cannot be a NIC of a host: whoever sits at the serial line
// plays the driver, with queues in 16 KiB at addresses 0 to 0x3fff as the engine sees them. One clock of 125 MHz for all but the
// receiving side of RGMII; timers of the engine count as if it were 250 MHz, so they take twice as long.
module ferroce_versa_ecp5 (
    input  wire       clk100,
    input  wire       rst_n,
    input  wire       uart_rx,
    output wire       uart_tx,
    output reg  [7:0] led,

    output wire       eth0_rst_n,
    output wire       eth0_tx_clk,
    output wire       eth0_tx_ctl,
    output wire [3:0] eth0_tx_data,
    input  wire       eth0_rx_clk,
    input  wire       eth0_rx_ctl,
    input  wire [3:0] eth0_rx_data
);
    // 125 MHz: 100 MHz * 5 / 4, VCO at 625 MHz.
    wire clk;
    wire locked;

    EHXPLLL #(
        .CLKI_DIV(4),
        .CLKFB_DIV(5),
        .CLKOP_DIV(5),
        .CLKOP_CPHASE(4),
        .CLKOP_FPHASE(0),
        .CLKOP_ENABLE("ENABLED"),
        .FEEDBK_PATH("CLKOP")
    ) pll (
        .CLKI(clk100),
        .CLKFB(clk),
        .CLKOP(clk),
        .RST(1'b0),
        .STDBY(1'b0),
        .PHASESEL0(1'b0),
        .PHASESEL1(1'b0),
        .PHASEDIR(1'b0),
        .PHASESTEP(1'b0),
        .PHASELOADREG(1'b0),
        .PLLWAKESYNC(1'b0),
        .ENCLKOP(1'b0),
        .ENCLKOS(1'b0),
        .LOCK(locked)
    );

    // One reset for core and port: the button, or no clock. The engine wants 16 cycles, which the count gives it.
    wire       arst = ~rst_n | ~locked;
    wire       start_rst;
    wire       rx_clk;
    wire       rx_rst;
    reg  [4:0] start;
    reg        rst;

    ferroce_cdc_reset reset_core (.clk(clk), .arst(arst), .rst(start_rst));
    ferroce_cdc_reset reset_rx (.clk(rx_clk), .arst(rst), .rst(rx_rst));

    always @(posedge clk or posedge start_rst) begin
        if (start_rst) begin
            start <= 5'd0;
            rst   <= 1'b1;
        end else begin
            start <= start == 5'd31 ? start : start + 5'd1;
            rst   <= start != 5'd31;
        end
    end

    wire [23:0] host_awaddr;
    wire        host_awvalid;
    wire        host_awready;
    wire [31:0] host_wdata;
    wire [3:0]  host_wstrb;
    wire        host_wvalid;
    wire        host_wready;
    wire [1:0]  host_bresp;
    wire        host_bvalid;
    wire        host_bready;
    wire [23:0] host_araddr;
    wire        host_arvalid;
    wire        host_arready;
    wire [31:0] host_rdata;
    wire [1:0]  host_rresp;
    wire        host_rvalid;
    wire        host_rready;
    wire [3:0]  mem_awid;
    wire [63:0] mem_awaddr;
    wire [7:0]  mem_awlen;
    wire [2:0]  mem_awsize;
    wire [1:0]  mem_awburst;
    wire        mem_awvalid;
    wire        mem_awready;
    wire [63:0] mem_wdata;
    wire [7:0]  mem_wstrb;
    wire        mem_wlast;
    wire        mem_wvalid;
    wire        mem_wready;
    wire [3:0]  mem_bid;
    wire [1:0]  mem_bresp;
    wire        mem_bvalid;
    wire        mem_bready;
    wire [3:0]  mem_arid;
    wire [63:0] mem_araddr;
    wire [7:0]  mem_arlen;
    wire [2:0]  mem_arsize;
    wire [1:0]  mem_arburst;
    wire        mem_arvalid;
    wire        mem_arready;
    wire [3:0]  mem_rid;
    wire [63:0] mem_rdata;
    wire [1:0]  mem_rresp;
    wire        mem_rlast;
    wire        mem_rvalid;
    wire        mem_rready;
    wire [63:0] rx_tdata;
    wire [7:0]  rx_tkeep;
    wire        rx_tlast;
    wire        rx_tuser;
    wire        rx_tvalid;
    wire        rx_tready;
    wire [63:0] tx_tdata;
    wire [7:0]  tx_tkeep;
    wire        tx_tlast;
    wire        tx_tuser;
    wire        tx_tvalid;
    wire        tx_tready;
    wire [10:0] irq_vector;
    wire        irq_valid;
    wire [7:0]  tx_d;
    wire        tx_en;
    wire [7:0]  rx_d;
    wire        rx_dv;
    wire        rx_er;
    wire        rx_bad;
    wire        rx_overflow;
    wire [7:0]  bad_frames;
    wire [7:0]  lost_frames;

    // Who answers the serial line: the engine, the memory, or the word of counters. One access at a time, so the address tells.
    wire        wr_engine = host_awaddr[23:22] == 2'b00;
    wire        rd_engine = host_araddr[23:22] == 2'b00;
    wire        rd_memory = host_araddr[23:21] == 3'b010;
    wire        wr_memory = host_awaddr[23:21] == 3'b010;
    wire        eng_awready;
    wire        eng_wready;
    wire [1:0]  eng_bresp;
    wire        eng_bvalid;
    wire        eng_arready;
    wire [31:0] eng_rdata;
    wire [1:0]  eng_rresp;
    wire        eng_rvalid;
    wire        word_done;
    wire [31:0] word_out;

    // A write of the memory is done when its word is; elsewhere it is refused. A cycle later comes the answer.
    wire        word_w = host_awvalid & host_wvalid & ~wr_engine;
    wire        word_r = host_arvalid & ~rd_engine;
    wire        done_w = word_w & (word_done | ~wr_memory);
    wire        done_r = word_r & (word_done | ~rd_memory);
    reg         ans_b;
    reg         ans_r;
    reg         ans_bad;
    reg  [31:0] ans_data;
    reg  [15:0] irqs;

    assign host_awready = wr_engine ? eng_awready : done_w;
    assign host_wready  = wr_engine ? eng_wready : done_w;
    assign host_bvalid  = eng_bvalid | ans_b;
    assign host_bresp   = ans_b ? {ans_bad, 1'b0} : eng_bresp;
    assign host_arready = rd_engine ? eng_arready : done_r;
    assign host_rvalid  = eng_rvalid | ans_r;
    assign host_rdata   = ans_r ? ans_data : eng_rdata;
    assign host_rresp   = ans_r ? 2'b00 : eng_rresp;

    always @(posedge clk) begin
        ans_b    <= done_w & ~rst;
        ans_r    <= done_r & ~rst;
        ans_bad  <= ~wr_memory;
        ans_data <= rd_memory ? word_out : {irqs, lost_frames, bad_frames};
        if (rst) irqs <= 16'd0;
        else     irqs <= irqs + {15'd0, irq_valid};
    end

    ferroce_uart_bus #(.DIVIDE(125)) uart (
        .clk(clk),
        .rst(rst),
        .rxd(uart_rx),
        .txd(uart_tx),
        .m_axil_awaddr(host_awaddr),
        .m_axil_awvalid(host_awvalid),
        .m_axil_awready(host_awready),
        .m_axil_wdata(host_wdata),
        .m_axil_wstrb(host_wstrb),
        .m_axil_wvalid(host_wvalid),
        .m_axil_wready(host_wready),
        .m_axil_bresp(host_bresp),
        .m_axil_bvalid(host_bvalid),
        .m_axil_bready(host_bready),
        .m_axil_araddr(host_araddr),
        .m_axil_arvalid(host_arvalid),
        .m_axil_arready(host_arready),
        .m_axil_rdata(host_rdata),
        .m_axil_rresp(host_rresp),
        .m_axil_rvalid(host_rvalid),
        .m_axil_rready(host_rready)
    );

    wire [7:0] pause_ack;
    wire [7:0] pause_send;

    ferroce engine (
        .clk(clk),
        .rst(rst),
        .s_axis_rx_tdata(rx_tdata),
        .s_axis_rx_tkeep(rx_tkeep),
        .s_axis_rx_tlast(rx_tlast),
        .s_axis_rx_tuser(rx_tuser),
        .s_axis_rx_tvalid(rx_tvalid),
        .s_axis_rx_tready(rx_tready),
        .m_axis_tx_tdata(tx_tdata),
        .m_axis_tx_tkeep(tx_tkeep),
        .m_axis_tx_tlast(tx_tlast),
        .m_axis_tx_tuser(tx_tuser),
        .m_axis_tx_tvalid(tx_tvalid),
        .m_axis_tx_tready(tx_tready),
        // `mac_1g` takes no pauses and sends none
        .pause_req(8'h00),
        .rx_backlog(1'b0),
        .pause_ack(pause_ack),
        .pause_send(pause_send),
        .s_axil_awaddr(host_awaddr[21:0]),
        .s_axil_awvalid(host_awvalid & wr_engine),
        .s_axil_awready(eng_awready),
        .s_axil_wdata(host_wdata),
        .s_axil_wstrb(host_wstrb),
        .s_axil_wvalid(host_wvalid & wr_engine),
        .s_axil_wready(eng_wready),
        .s_axil_bresp(eng_bresp),
        .s_axil_bvalid(eng_bvalid),
        .s_axil_bready(host_bready),
        .s_axil_araddr(host_araddr[21:0]),
        .s_axil_arvalid(host_arvalid & rd_engine),
        .s_axil_arready(eng_arready),
        .s_axil_rdata(eng_rdata),
        .s_axil_rresp(eng_rresp),
        .s_axil_rvalid(eng_rvalid),
        .s_axil_rready(host_rready),
        .m_axi_awid(mem_awid),
        .m_axi_awaddr(mem_awaddr),
        .m_axi_awlen(mem_awlen),
        .m_axi_awsize(mem_awsize),
        .m_axi_awburst(mem_awburst),
        .m_axi_awvalid(mem_awvalid),
        .m_axi_awready(mem_awready),
        .m_axi_wdata(mem_wdata),
        .m_axi_wstrb(mem_wstrb),
        .m_axi_wlast(mem_wlast),
        .m_axi_wvalid(mem_wvalid),
        .m_axi_wready(mem_wready),
        .m_axi_bid(mem_bid),
        .m_axi_bresp(mem_bresp),
        .m_axi_bvalid(mem_bvalid),
        .m_axi_bready(mem_bready),
        .m_axi_arid(mem_arid),
        .m_axi_araddr(mem_araddr),
        .m_axi_arlen(mem_arlen),
        .m_axi_arsize(mem_arsize),
        .m_axi_arburst(mem_arburst),
        .m_axi_arvalid(mem_arvalid),
        .m_axi_arready(mem_arready),
        .m_axi_rid(mem_rid),
        .m_axi_rdata(mem_rdata),
        .m_axi_rresp(mem_rresp),
        .m_axi_rlast(mem_rlast),
        .m_axi_rvalid(mem_rvalid),
        .m_axi_rready(mem_rready),
        .irq_vector(irq_vector),
        .irq_valid(irq_valid),
        .irq_ready(1'b1)
    );

    ferroce_axi_ram #(.LOG_BYTES(14)) ram (
        .clk(clk),
        .rst(rst),
        .s_axi_awid(mem_awid),
        .s_axi_awaddr(mem_awaddr),
        .s_axi_awvalid(mem_awvalid),
        .s_axi_awready(mem_awready),
        .s_axi_wdata(mem_wdata),
        .s_axi_wstrb(mem_wstrb),
        .s_axi_wlast(mem_wlast),
        .s_axi_wvalid(mem_wvalid),
        .s_axi_wready(mem_wready),
        .s_axi_bid(mem_bid),
        .s_axi_bresp(mem_bresp),
        .s_axi_bvalid(mem_bvalid),
        .s_axi_bready(mem_bready),
        .s_axi_arid(mem_arid),
        .s_axi_araddr(mem_araddr),
        .s_axi_arlen(mem_arlen),
        .s_axi_arvalid(mem_arvalid),
        .s_axi_arready(mem_arready),
        .s_axi_rid(mem_rid),
        .s_axi_rdata(mem_rdata),
        .s_axi_rresp(mem_rresp),
        .s_axi_rlast(mem_rlast),
        .s_axi_rvalid(mem_rvalid),
        .s_axi_rready(mem_rready),
        .word_addr(word_w ? host_awaddr[13:2] : host_araddr[13:2]),
        .word_write(word_w),
        .word_in(host_wdata),
        .word_go((word_w & wr_memory) | (word_r & rd_memory)),
        .word_done(word_done),
        .word_out(word_out)
    );

    ferroce_mac_1g mac (
        .clk(clk),
        .rst(rst),
        .rx_clk(rx_clk),
        .rx_rst(rx_rst),
        .tx_d(tx_d),
        .tx_en(tx_en),
        .rx_d(rx_d),
        .rx_dv(rx_dv),
        .rx_er(rx_er),
        .s_axis_tdata(tx_tdata),
        .s_axis_tkeep(tx_tkeep),
        .s_axis_tlast(tx_tlast),
        .s_axis_tuser(tx_tuser),
        .s_axis_tvalid(tx_tvalid),
        .s_axis_tready(tx_tready),
        .m_axis_tdata(rx_tdata),
        .m_axis_tkeep(rx_tkeep),
        .m_axis_tlast(rx_tlast),
        .m_axis_tuser(rx_tuser),
        .m_axis_tvalid(rx_tvalid),
        .m_axis_tready(rx_tready),
        .rx_bad(rx_bad),
        .rx_overflow(rx_overflow)
    );

    ferroce_rgmii_ecp5 rgmii (
        .clk(clk),
        .clk_late(clk),
        .tx_d(tx_d),
        .tx_en(tx_en),
        .pin_tx_clk(eth0_tx_clk),
        .pin_tx_data(eth0_tx_data),
        .pin_tx_ctl(eth0_tx_ctl),
        .pin_rx_clk(eth0_rx_clk),
        .pin_rx_data(eth0_rx_data),
        .pin_rx_ctl(eth0_rx_ctl),
        .rx_clk(rx_clk),
        .rx_d(rx_d),
        .rx_dv(rx_dv),
        .rx_er(rx_er)
    );

    ferroce_cdc_count #(.WIDTH(8)) count_bad (
        .src_clk(rx_clk), .src_rst(rx_rst), .event_in(rx_bad), .dst_clk(clk), .dst_rst(rst), .count(bad_frames)
    );
    ferroce_cdc_count #(.WIDTH(8)) count_lost (
        .src_clk(rx_clk), .src_rst(rx_rst), .event_in(rx_overflow), .dst_clk(clk), .dst_rst(rst), .count(lost_frames)
    );

    // The PHY, an 88E1512, asks for 10 ms: it gets 16.8.
    ferroce_phy_reset #(.LOG_CYCLES(21)) phy_reset (.clk(clk), .arst(start_rst), .phy_rst_n(eth0_rst_n));

    // Lamps: the clock, interrupts, faults, traffic, out of reset. Whether a 1 lights or darkens them is not known here.
    reg  [25:0] beat;
    wire        lamp_link;
    wire        lamp_activity;
    wire        lamp_fault;
    reg  [15:0] seen;

    ferroce_leds #(.LOG_FLASH(23)) lamps (
        .clk(clk),
        .rst(rst),
        .up(1'b1),
        .traffic((rx_tvalid & rx_tready) | (tx_tvalid & tx_tready)),
        .trouble(seen != {lost_frames, bad_frames}),
        .link(lamp_link),
        .activity(lamp_activity),
        .fault(lamp_fault)
    );

    always @(posedge clk) begin
        beat <= beat + 26'd1;
        seen <= {lost_frames, bad_frames};
        led  <= {beat[25], 3'd0, irqs[0], lamp_fault, lamp_activity, lamp_link};
    end

    wire unused = &{1'b0, irq_vector, pause_ack, pause_send, mem_awlen, mem_awsize, mem_awburst, mem_arsize, mem_arburst, host_araddr[20:14], host_awaddr[20:14]};
endmodule
