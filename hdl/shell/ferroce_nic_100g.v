// 100G NIC: the engine between the host side (PCIe) and the port (CMAC). Wiring; the boards differ in pins alone.
//
//     PCIe ◄─► host_qdma ◄─ BAR 0 ─► shell_page ─► ferroce ◄═► mac_cmac ◄─► QSFP28
//                  ▲═══════ host memory, MSI-X ══════╝
//
// One clock for all but the inside of `mac_cmac`: that of the PCIe bridge, 250 MHz.
module ferroce_nic_100g (
    input  wire        pcie_refclk_p,
    input  wire        pcie_refclk_n,
    input  wire        pcie_reset_n,
    input  wire [15:0] pcie_rx_p,
    input  wire [15:0] pcie_rx_n,
    output wire [15:0] pcie_tx_p,
    output wire [15:0] pcie_tx_n,

    input  wire        qsfp_refclk_p,
    input  wire        qsfp_refclk_n,
    input  wire [3:0]  qsfp_rx_p,
    input  wire [3:0]  qsfp_rx_n,
    output wire [3:0]  qsfp_tx_p,
    output wire [3:0]  qsfp_tx_n,

    output wire        led_link,
    output wire        led_activity,
    output wire        led_fault
);
    wire        core_clk;
    wire        core_rst;
    wire        arst;
    wire        init_clk;
    wire        init_locked;
    wire [10:0] irq_vector;
    wire        irq_valid;
    wire        irq_ready;
    wire        irq_refused;
    wire [3:0]  link_status;
    wire [31:0] rx_overflow;
    wire [31:0] rx_bad;
    wire [31:0] tx_dropped;
    wire [21:0]  host_awaddr;
    wire         host_awvalid;
    wire         host_awready;
    wire [31:0]  host_wdata;
    wire [3:0]   host_wstrb;
    wire         host_wvalid;
    wire         host_wready;
    wire [1:0]   host_bresp;
    wire         host_bvalid;
    wire         host_bready;
    wire [21:0]  host_araddr;
    wire         host_arvalid;
    wire         host_arready;
    wire [31:0]  host_rdata;
    wire [1:0]   host_rresp;
    wire         host_rvalid;
    wire         host_rready;
    wire [21:0]  regs_araddr;
    wire         regs_arvalid;
    wire         regs_arready;
    wire [31:0]  regs_rdata;
    wire [1:0]   regs_rresp;
    wire         regs_rvalid;
    wire         regs_rready;
    wire [3:0]   mem_awid;
    wire [63:0]  mem_awaddr;
    wire [7:0]   mem_awlen;
    wire [2:0]   mem_awsize;
    wire [1:0]   mem_awburst;
    wire         mem_awvalid;
    wire         mem_awready;
    wire [511:0] mem_wdata;
    wire [63:0]  mem_wstrb;
    wire         mem_wlast;
    wire         mem_wvalid;
    wire         mem_wready;
    wire [3:0]   mem_bid;
    wire [1:0]   mem_bresp;
    wire         mem_bvalid;
    wire         mem_bready;
    wire [3:0]   mem_arid;
    wire [63:0]  mem_araddr;
    wire [7:0]   mem_arlen;
    wire [2:0]   mem_arsize;
    wire [1:0]   mem_arburst;
    wire         mem_arvalid;
    wire         mem_arready;
    wire [3:0]   mem_rid;
    wire [511:0] mem_rdata;
    wire [1:0]   mem_rresp;
    wire         mem_rlast;
    wire         mem_rvalid;
    wire         mem_rready;
    wire [511:0] rx_tdata;
    wire [63:0]  rx_tkeep;
    wire         rx_tlast;
    wire         rx_tuser;
    wire         rx_tvalid;
    wire         rx_tready;
    wire [511:0] tx_tdata;
    wire [63:0]  tx_tkeep;
    wire         tx_tlast;
    wire         tx_tuser;
    wire         tx_tvalid;
    wire         tx_tready;
    wire [7:0]   pause_req;
    wire         rx_backlog;
    wire [7:0]   pause_ack;
    wire [7:0]   pause_send;

    // The reset of all that runs with the core, for some cycles longer than that of PCIe.
    ferroce_cdc_reset reset_core (.clk(core_clk), .arst(arst), .rst(core_rst));

    ferroce_host_qdma host (
        .pcie_refclk_p(pcie_refclk_p),
        .pcie_refclk_n(pcie_refclk_n),
        .pcie_reset_n(pcie_reset_n),
        .pcie_rx_p(pcie_rx_p),
        .pcie_rx_n(pcie_rx_n),
        .pcie_tx_p(pcie_tx_p),
        .pcie_tx_n(pcie_tx_n),
        .core_clk(core_clk),
        .arst(arst),
        .core_rst(core_rst),
        .init_clk(init_clk),
        .init_locked(init_locked),
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
        .m_axil_rready(host_rready),
        .s_axi_awid(mem_awid),
        .s_axi_awaddr(mem_awaddr),
        .s_axi_awlen(mem_awlen),
        .s_axi_awsize(mem_awsize),
        .s_axi_awburst(mem_awburst),
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
        .s_axi_arsize(mem_arsize),
        .s_axi_arburst(mem_arburst),
        .s_axi_arvalid(mem_arvalid),
        .s_axi_arready(mem_arready),
        .s_axi_rid(mem_rid),
        .s_axi_rdata(mem_rdata),
        .s_axi_rresp(mem_rresp),
        .s_axi_rlast(mem_rlast),
        .s_axi_rvalid(mem_rvalid),
        .s_axi_rready(mem_rready),
        .irq_vector(irq_vector),
        .irq_valid(irq_valid),
        .irq_ready(irq_ready),
        .irq_refused(irq_refused)
    );

    ferroce_shell_page page (
        .clk(core_clk),
        .rst(core_rst),
        .s_axil_araddr(host_araddr),
        .s_axil_arvalid(host_arvalid),
        .s_axil_arready(host_arready),
        .s_axil_rdata(host_rdata),
        .s_axil_rresp(host_rresp),
        .s_axil_rvalid(host_rvalid),
        .s_axil_rready(host_rready),
        .m_axil_araddr(regs_araddr),
        .m_axil_arvalid(regs_arvalid),
        .m_axil_arready(regs_arready),
        .m_axil_rdata(regs_rdata),
        .m_axil_rresp(regs_rresp),
        .m_axil_rvalid(regs_rvalid),
        .m_axil_rready(regs_rready),
        .link_status(link_status),
        .rx_overflow(rx_overflow),
        .rx_bad(rx_bad),
        .tx_dropped(tx_dropped),
        .irq_refused(irq_refused)
    );

    ferroce engine (
        .clk(core_clk),
        .rst(core_rst),
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
        .pause_req(pause_req),
        .rx_backlog(rx_backlog),
        .pause_ack(pause_ack),
        .pause_send(pause_send),
        .s_axil_awaddr(host_awaddr),
        .s_axil_awvalid(host_awvalid),
        .s_axil_awready(host_awready),
        .s_axil_wdata(host_wdata),
        .s_axil_wstrb(host_wstrb),
        .s_axil_wvalid(host_wvalid),
        .s_axil_wready(host_wready),
        .s_axil_bresp(host_bresp),
        .s_axil_bvalid(host_bvalid),
        .s_axil_bready(host_bready),
        .s_axil_araddr(regs_araddr),
        .s_axil_arvalid(regs_arvalid),
        .s_axil_arready(regs_arready),
        .s_axil_rdata(regs_rdata),
        .s_axil_rresp(regs_rresp),
        .s_axil_rvalid(regs_rvalid),
        .s_axil_rready(regs_rready),
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
        .irq_ready(irq_ready)
    );

    ferroce_mac_cmac mac (
        .core_clk(core_clk),
        .core_rst(core_rst),
        .arst(arst),
        .init_clk(init_clk),
        .init_locked(init_locked),
        .refclk_p(qsfp_refclk_p),
        .refclk_n(qsfp_refclk_n),
        .rx_p(qsfp_rx_p),
        .rx_n(qsfp_rx_n),
        .tx_p(qsfp_tx_p),
        .tx_n(qsfp_tx_n),
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
        .pause_req(pause_req),
        .rx_backlog(rx_backlog),
        .pause_ack(pause_ack),
        .pause_send(pause_send),
        .link_status(link_status),
        .rx_overflow(rx_overflow),
        .rx_bad(rx_bad),
        .tx_dropped(tx_dropped)
    );

    // What changes a counter of dropped frames lights the fault lamp.
    reg [31:0] seen;
    reg        traffic;
    reg        trouble;

    always @(posedge core_clk) begin
        seen    <= rx_overflow ^ rx_bad ^ tx_dropped;
        traffic <= (rx_tvalid & rx_tready) | (tx_tvalid & tx_tready);
        trouble <= seen != (rx_overflow ^ rx_bad ^ tx_dropped);
    end

    ferroce_leds leds (
        .clk(core_clk),
        .rst(core_rst),
        .up(link_status[0]),
        .traffic(traffic),
        .trouble(trouble),
        .link(led_link),
        .activity(led_activity),
        .fault(led_fault)
    );
endmodule
