// host_qdma with a bridge that has accesses early, and a clock generator that loses its lock. Prints PASS or stops with an error.
//
// Checked: an access that comes in the reset waits for its end, and is taken once; a lost lock resets nothing.
`timescale 1ns / 1ps

module qdma_0 (
    input wire sys_clk, input wire sys_clk_gt, input wire sys_rst_n, input wire [15:0] pci_exp_rxp,
    input wire [15:0] pci_exp_rxn, output wire [15:0] pci_exp_txp, output wire [15:0] pci_exp_txn, output bit axi_aclk,
    output bit axi_aresetn, input wire soft_reset_n, output wire [31:0] m_axil_awaddr, output bit m_axil_awvalid,
    input wire m_axil_awready, output wire [31:0] m_axil_wdata, output wire [3:0] m_axil_wstrb, output bit m_axil_wvalid,
    input wire m_axil_wready, input wire [1:0] m_axil_bresp, input wire m_axil_bvalid, output bit m_axil_bready,
    output wire [31:0] m_axil_araddr, output bit m_axil_arvalid, input wire m_axil_arready, input wire [31:0] m_axil_rdata,
    input wire [1:0] m_axil_rresp, input wire m_axil_rvalid, output bit m_axil_rready, input wire [3:0] s_axib_awid,
    input wire [63:0] s_axib_awaddr, input wire [3:0] s_axib_awregion, input wire [7:0] s_axib_awlen,
    input wire [2:0] s_axib_awsize, input wire [1:0] s_axib_awburst, input wire s_axib_awvalid, output wire s_axib_awready,
    input wire [511:0] s_axib_wdata, input wire [63:0] s_axib_wstrb, input wire s_axib_wlast, input wire s_axib_wvalid,
    output wire s_axib_wready, output wire [3:0] s_axib_bid, output wire [1:0] s_axib_bresp, output wire s_axib_bvalid,
    input wire s_axib_bready, input wire [3:0] s_axib_arid, input wire [63:0] s_axib_araddr,
    input wire [3:0] s_axib_arregion, input wire [7:0] s_axib_arlen, input wire [2:0] s_axib_arsize,
    input wire [1:0] s_axib_arburst, input wire s_axib_arvalid, output wire s_axib_arready, output wire [3:0] s_axib_rid,
    output wire [511:0] s_axib_rdata, output wire [1:0] s_axib_rresp, output wire s_axib_rlast, output wire s_axib_rvalid,
    input wire s_axib_rready, input wire usr_irq_in_vld, input wire [10:0] usr_irq_in_vec, input wire [7:0] usr_irq_in_fnc,
    output wire usr_irq_out_ack, output wire usr_irq_out_fail
);
    always #2 axi_aclk = !axi_aclk;
endmodule

// verilator lint_off UNUSEDPARAM
module IBUFDS_GTE4 #(parameter [1:0] REFCLK_HROW_CK_SEL = 0) (input wire I, IB, CEB, output wire O, ODIV2);
    assign {O, ODIV2} = {2{I}};
endmodule

module MMCME4_BASE #(
    parameter real CLKIN1_PERIOD = 0.0, parameter real CLKFBOUT_MULT_F = 5.0, parameter real CLKOUT0_DIVIDE_F = 1.0
) (
    input wire CLKIN1, CLKFBIN, RST, PWRDWN, output wire CLKFBOUT, output bit CLKOUT0, output bit LOCKED
);
    assign CLKFBOUT = CLKIN1;
endmodule
// verilator lint_on UNUSEDPARAM

module BUFG (input wire I, output wire O);
    assign O = I;
endmodule

module host_tb;
    wire core_clk, arst, core_rst, init_clk, init_locked;
    wire [21:0] m_axil_awaddr, m_axil_araddr;
    wire [31:0] m_axil_wdata;
    wire [3:0]  m_axil_wstrb;
    wire        m_axil_awvalid, m_axil_wvalid, m_axil_bready, m_axil_arvalid, m_axil_rready;
    bit         m_axil_awready, m_axil_wready, m_axil_arready;
    wire        s_axi_awready, s_axi_wready, s_axi_bvalid, s_axi_arready, s_axi_rlast, s_axi_rvalid, irq_ready, irq_refused;
    wire [3:0]  s_axi_bid, s_axi_rid;
    wire [1:0]  s_axi_bresp, s_axi_rresp;
    wire [511:0] s_axi_rdata;
    wire [15:0] pcie_tx_p, pcie_tx_n;
    ferroce_host_qdma dut (
        .*, .pcie_refclk_p(1'b0), .pcie_refclk_n(1'b1), .pcie_reset_n(1'b1), .pcie_rx_p(16'd0), .pcie_rx_n(16'd0),
        .m_axil_bresp(2'd0), .m_axil_bvalid(1'b0), .m_axil_rdata(32'd0), .m_axil_rresp(2'd0), .m_axil_rvalid(1'b0),
        .s_axi_awid(4'd0), .s_axi_awaddr(64'd0), .s_axi_awlen(8'd0), .s_axi_awsize(3'd6), .s_axi_awburst(2'd1),
        .s_axi_awvalid(1'b0), .s_axi_wdata(512'd0), .s_axi_wstrb(64'd0), .s_axi_wlast(1'b0), .s_axi_wvalid(1'b0),
        .s_axi_bready(1'b1), .s_axi_arid(4'd0), .s_axi_araddr(64'd0), .s_axi_arlen(8'd0), .s_axi_arsize(3'd6),
        .s_axi_arburst(2'd1), .s_axi_arvalid(1'b0), .s_axi_rready(1'b1), .irq_vector(11'd0), .irq_valid(1'b0)
    );
    ferroce_cdc_reset reset_core (.clk(core_clk), .arst(arst), .rst(core_rst));

    task automatic fail(string what);
        $display("FAIL at %0t: %s", $time, what);
        $fatal(1);
    endtask

    // The bridge holds each of its valids until it is taken; the core takes what it sees, in its reset too.
    int unsigned given, taken;
    always @(posedge core_clk) begin
        if (dut.qdma.m_axil_awvalid && dut.qdma.m_axil_awready) given++;
        if (dut.qdma.m_axil_wvalid && dut.qdma.m_axil_wready) given++;
        if (dut.qdma.m_axil_arvalid && dut.qdma.m_axil_arready) given++;
        if (dut.qdma.m_axil_awready) dut.qdma.m_axil_awvalid <= 0;
        if (dut.qdma.m_axil_wready) dut.qdma.m_axil_wvalid <= 0;
        if (dut.qdma.m_axil_arready) dut.qdma.m_axil_arvalid <= 0;
        if (!core_rst) taken += 32'(m_axil_awvalid) + 32'(m_axil_wvalid) + 32'(m_axil_arvalid);
    end

    initial begin
        m_axil_awready = 1;
        m_axil_wready = 1;
        m_axil_arready = 1;
        repeat (20) @(negedge core_clk);
        if (!arst || !core_rst) fail("no reset");
        dut.qdma.axi_aresetn = 1;
        dut.qdma.m_axil_awvalid = 1;
        dut.qdma.m_axil_wvalid = 1;
        dut.qdma.m_axil_arvalid = 1;
        repeat (40) @(negedge core_clk);
        if (arst || core_rst) fail("the core waits for the clock of the MAC");
        if (given != 3 || taken != 3) fail($sformatf("%0d accesses are given, %0d taken", given, taken));
        dut.init_mmcm.LOCKED = 1;
        repeat (40) @(negedge core_clk);
        if (!init_locked) fail("no lock");
        dut.init_mmcm.LOCKED = 0;
        repeat (40) begin
            @(negedge core_clk);
            if (arst || core_rst) fail("a lost lock resets the core");
        end
        if (init_locked) fail("the lock is not lost");
        dut.qdma.axi_aresetn = 0;
        repeat (40) @(negedge core_clk);
        if (!arst || !core_rst) fail("no reset of PCIe");
        $display("PASS");
        $finish;
    end
endmodule
