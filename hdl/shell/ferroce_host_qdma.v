// Host side: PCIe Gen3 x16 by the QDMA, used as a bridge, and the clocks and resets that come from it.
//
// BAR 0 becomes AXI4-Lite accesses (`m_axil`), AXI4 accesses of the engine (`s_axi`) become memory requests of the card at the same
// address (the bridge does not translate), interrupts become MSI-X messages. The queues and the DMA engines of the QDMA are
// not set up: what of its ports belongs to them is left open.
//
// `core_clk` is the bridge's own clock, 250 MHz, so that the host side needs no crossing. `arst` is high while PCIe is in reset, and
// is to be taken in by `cdc_reset`, which gives back `core_rst`: until that ends no access goes on, as nobody would answer it.
// `init_clk` has 125 MHz while `init_locked` is high; that falls in a reset of PCIe, and resets nothing here.
module ferroce_host_qdma (
    input  wire         pcie_refclk_p,
    input  wire         pcie_refclk_n,
    input  wire         pcie_reset_n,
    input  wire [15:0]  pcie_rx_p,
    input  wire [15:0]  pcie_rx_n,
    output wire [15:0]  pcie_tx_p,
    output wire [15:0]  pcie_tx_n,

    output wire         core_clk,
    output wire         arst,
    input  wire         core_rst,
    output wire         init_clk,
    output wire         init_locked,

    output wire [21:0]  m_axil_awaddr,
    output wire         m_axil_awvalid,
    input  wire         m_axil_awready,
    output wire [31:0]  m_axil_wdata,
    output wire [3:0]   m_axil_wstrb,
    output wire         m_axil_wvalid,
    input  wire         m_axil_wready,
    input  wire [1:0]   m_axil_bresp,
    input  wire         m_axil_bvalid,
    output wire         m_axil_bready,
    output wire [21:0]  m_axil_araddr,
    output wire         m_axil_arvalid,
    input  wire         m_axil_arready,
    input  wire [31:0]  m_axil_rdata,
    input  wire [1:0]   m_axil_rresp,
    input  wire         m_axil_rvalid,
    output wire         m_axil_rready,

    input  wire [3:0]   s_axi_awid,
    input  wire [63:0]  s_axi_awaddr,
    input  wire [7:0]   s_axi_awlen,
    input  wire [2:0]   s_axi_awsize,
    input  wire [1:0]   s_axi_awburst,
    input  wire         s_axi_awvalid,
    output wire         s_axi_awready,
    input  wire [511:0] s_axi_wdata,
    input  wire [63:0]  s_axi_wstrb,
    input  wire         s_axi_wlast,
    input  wire         s_axi_wvalid,
    output wire         s_axi_wready,
    output wire [3:0]   s_axi_bid,
    output wire [1:0]   s_axi_bresp,
    output wire         s_axi_bvalid,
    input  wire         s_axi_bready,
    input  wire [3:0]   s_axi_arid,
    input  wire [63:0]  s_axi_araddr,
    input  wire [7:0]   s_axi_arlen,
    input  wire [2:0]   s_axi_arsize,
    input  wire [1:0]   s_axi_arburst,
    input  wire         s_axi_arvalid,
    output wire         s_axi_arready,
    output wire [3:0]   s_axi_rid,
    output wire [511:0] s_axi_rdata,
    output wire [1:0]   s_axi_rresp,
    output wire         s_axi_rlast,
    output wire         s_axi_rvalid,
    input  wire         s_axi_rready,

    input  wire [10:0]  irq_vector,
    input  wire         irq_valid,
    output wire         irq_ready,
    output wire         irq_refused
);
    wire        refclk_gt;
    wire        refclk;
    wire        axi_aresetn;
    wire [31:0] awaddr;
    wire [31:0] araddr;
    wire        awvalid;
    wire        wvalid;
    wire        arvalid;
    wire        irq_in_vld;
    wire [10:0] irq_in_vec;
    wire [7:0]  irq_in_fnc;
    wire        irq_out_ack;
    wire        irq_out_fail;

    IBUFDS_GTE4 #(.REFCLK_HROW_CK_SEL(2'b00)) refclk_buffer (
        .I(pcie_refclk_p),
        .IB(pcie_refclk_n),
        .CEB(1'b0),
        .O(refclk_gt),
        .ODIV2(refclk)
    );

    qdma_0 qdma (
        .sys_clk(refclk),
        .sys_clk_gt(refclk_gt),
        .sys_rst_n(pcie_reset_n),
        .pci_exp_rxp(pcie_rx_p),
        .pci_exp_rxn(pcie_rx_n),
        .pci_exp_txp(pcie_tx_p),
        .pci_exp_txn(pcie_tx_n),
        .axi_aclk(core_clk),
        .axi_aresetn(axi_aresetn),
        .soft_reset_n(1'b1),

        .m_axil_awaddr(awaddr),
        .m_axil_awvalid(awvalid),
        .m_axil_awready(m_axil_awready & ~core_rst),
        .m_axil_wdata(m_axil_wdata),
        .m_axil_wstrb(m_axil_wstrb),
        .m_axil_wvalid(wvalid),
        .m_axil_wready(m_axil_wready & ~core_rst),
        .m_axil_bresp(m_axil_bresp),
        .m_axil_bvalid(m_axil_bvalid),
        .m_axil_bready(m_axil_bready),
        .m_axil_araddr(araddr),
        .m_axil_arvalid(arvalid),
        .m_axil_arready(m_axil_arready & ~core_rst),
        .m_axil_rdata(m_axil_rdata),
        .m_axil_rresp(m_axil_rresp),
        .m_axil_rvalid(m_axil_rvalid),
        .m_axil_rready(m_axil_rready),

        .s_axib_awid(s_axi_awid),
        .s_axib_awaddr(s_axi_awaddr),
        .s_axib_awregion(4'd0),
        .s_axib_awlen(s_axi_awlen),
        .s_axib_awsize(s_axi_awsize),
        .s_axib_awburst(s_axi_awburst),
        .s_axib_awvalid(s_axi_awvalid),
        .s_axib_awready(s_axi_awready),
        .s_axib_wdata(s_axi_wdata),
        .s_axib_wstrb(s_axi_wstrb),
        .s_axib_wlast(s_axi_wlast),
        .s_axib_wvalid(s_axi_wvalid),
        .s_axib_wready(s_axi_wready),
        .s_axib_bid(s_axi_bid),
        .s_axib_bresp(s_axi_bresp),
        .s_axib_bvalid(s_axi_bvalid),
        .s_axib_bready(s_axi_bready),
        .s_axib_arid(s_axi_arid),
        .s_axib_araddr(s_axi_araddr),
        .s_axib_arregion(4'd0),
        .s_axib_arlen(s_axi_arlen),
        .s_axib_arsize(s_axi_arsize),
        .s_axib_arburst(s_axi_arburst),
        .s_axib_arvalid(s_axi_arvalid),
        .s_axib_arready(s_axi_arready),
        .s_axib_rid(s_axi_rid),
        .s_axib_rdata(s_axi_rdata),
        .s_axib_rresp(s_axi_rresp),
        .s_axib_rlast(s_axi_rlast),
        .s_axib_rvalid(s_axi_rvalid),
        .s_axib_rready(s_axi_rready),

        .usr_irq_in_vld(irq_in_vld),
        .usr_irq_in_vec(irq_in_vec),
        .usr_irq_in_fnc(irq_in_fnc),
        .usr_irq_out_ack(irq_out_ack),
        .usr_irq_out_fail(irq_out_fail)
    );

    assign m_axil_awaddr = awaddr[21:0];
    assign m_axil_araddr = araddr[21:0];

    assign m_axil_awvalid = awvalid & ~core_rst;
    assign m_axil_wvalid  = wvalid & ~core_rst;
    assign m_axil_arvalid = arvalid & ~core_rst;

    // One reset for all: PCIe is in reset, the bridge with it.
    reg pcie_rst;

    initial pcie_rst = 1'b1;
    always @(posedge core_clk) pcie_rst <= ~axi_aresetn;

    ferroce_cdc_reset reset_all (.clk(core_clk), .arst(pcie_rst), .rst(arst));

    ferroce_msix_qdma msix (
        .clk(core_clk),
        .rst(arst),
        .irq_vector(irq_vector),
        .irq_valid(irq_valid),
        .irq_ready(irq_ready),
        .usr_irq_in_vld(irq_in_vld),
        .usr_irq_in_vec(irq_in_vec),
        .usr_irq_in_fnc(irq_in_fnc),
        .usr_irq_out_ack(irq_out_ack),
        .usr_irq_out_fail(irq_out_fail),
        .refused(irq_refused)
    );

    // 125 MHz for the transceivers of the MAC: 250 MHz * 4 / 8.
    wire feedback;
    wire init_unbuffered;

    MMCME4_BASE #(
        .CLKIN1_PERIOD(4.0),
        .CLKFBOUT_MULT_F(4.0),
        .CLKOUT0_DIVIDE_F(8.0)
    ) init_mmcm (
        .CLKIN1(core_clk),
        .CLKFBIN(feedback),
        .RST(pcie_rst),
        .PWRDWN(1'b0),
        .CLKFBOUT(feedback),
        .CLKOUT0(init_unbuffered),
        .LOCKED(init_locked)
    );
    BUFG init_buffer (.I(init_unbuffered), .O(init_clk));

    // BAR 0 has 4 MiB.
    wire unused = &{1'b0, awaddr[31:22], araddr[31:22]};
endmodule
