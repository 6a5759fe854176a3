// A card that is not an engine but has its ports: it sends every good frame back, copies memory and
// interrupts. LANES is the data path in bytes.
//
// Registers: 0x00 scratch, 0x04 rules to break (bit 0: pause inside a frame, bit 1: not ready to
// receive), 0x08/0x0c source, 0x10/0x14 destination, 0x18 beats less one (writing starts a copy),
// 0x1c copies done (15:0) and worst response (17:16).
module copier #(parameter LANES = 64) (
  input wire clk, input wire rst,
  input wire [8*LANES-1:0] s_axis_rx_tdata, input wire [LANES-1:0] s_axis_rx_tkeep,
  input wire s_axis_rx_tlast, input wire s_axis_rx_tuser, input wire s_axis_rx_tvalid,
  output wire s_axis_rx_tready,
  output reg [8*LANES-1:0] m_axis_tx_tdata, output reg [LANES-1:0] m_axis_tx_tkeep,
  output reg m_axis_tx_tlast, output wire m_axis_tx_tuser, output reg m_axis_tx_tvalid,
  input wire m_axis_tx_tready,
  input wire rx_backlog, input wire [7:0] pause_req, output wire [7:0] pause_ack, output wire [7:0] pause_send,
  input wire [21:0] s_axil_awaddr, input wire s_axil_awvalid, output wire s_axil_awready,
  input wire [31:0] s_axil_wdata, input wire [3:0] s_axil_wstrb, input wire s_axil_wvalid,
  output wire s_axil_wready,
  output wire [1:0] s_axil_bresp, output reg s_axil_bvalid, input wire s_axil_bready,
  input wire [21:0] s_axil_araddr, input wire s_axil_arvalid, output wire s_axil_arready,
  output reg [31:0] s_axil_rdata, output wire [1:0] s_axil_rresp, output reg s_axil_rvalid,
  input wire s_axil_rready,
  output wire [3:0] m_axi_awid, output wire [63:0] m_axi_awaddr, output wire [7:0] m_axi_awlen,
  output wire [2:0] m_axi_awsize, output wire [1:0] m_axi_awburst, output reg m_axi_awvalid,
  input wire m_axi_awready,
  output wire [8*LANES-1:0] m_axi_wdata, output wire [LANES-1:0] m_axi_wstrb, output wire m_axi_wlast,
  output reg m_axi_wvalid, input wire m_axi_wready,
  input wire [3:0] m_axi_bid, input wire [1:0] m_axi_bresp, input wire m_axi_bvalid,
  output wire m_axi_bready,
  output wire [3:0] m_axi_arid, output wire [63:0] m_axi_araddr, output wire [7:0] m_axi_arlen,
  output wire [2:0] m_axi_arsize, output wire [1:0] m_axi_arburst, output reg m_axi_arvalid,
  input wire m_axi_arready,
  input wire [3:0] m_axi_rid, input wire [8*LANES-1:0] m_axi_rdata, input wire [1:0] m_axi_rresp,
  input wire m_axi_rlast, input wire m_axi_rvalid, output wire m_axi_rready,
  output wire [10:0] irq_vector, output reg irq_valid, input wire irq_ready
);
  // Registers.
  reg [31:0] scratch, breaks, beats;
  reg [63:0] source, target;
  reg [15:0] done;
  reg [1:0] worst;
  reg have_aw, have_w, start;
  reg [21:0] awaddr;
  reg [31:0] wdata;
  assign s_axil_awready = !have_aw && !s_axil_bvalid;
  assign s_axil_wready = !have_w && !s_axil_bvalid;
  assign s_axil_arready = !s_axil_rvalid;
  assign s_axil_bresp = 2'd0;
  assign s_axil_rresp = 2'd0;
  always @(posedge clk) begin
    start <= 1'b0;
    if (s_axil_awvalid && s_axil_awready) begin have_aw <= 1'b1; awaddr <= s_axil_awaddr; end
    if (s_axil_wvalid && s_axil_wready) begin have_w <= 1'b1; wdata <= s_axil_wdata; end
    if (have_aw && have_w) begin
      have_aw <= 1'b0; have_w <= 1'b0; s_axil_bvalid <= 1'b1;
      case (awaddr)
        22'h00: scratch <= wdata;
        22'h04: breaks <= wdata;
        22'h08: source[31:0] <= wdata;
        22'h0c: source[63:32] <= wdata;
        22'h10: target[31:0] <= wdata;
        22'h14: target[63:32] <= wdata;
        22'h18: begin beats <= wdata; start <= 1'b1; end
        default: ;
      endcase
    end
    if (s_axil_bvalid && s_axil_bready) s_axil_bvalid <= 1'b0;
    if (s_axil_arvalid && s_axil_arready) begin
      s_axil_rvalid <= 1'b1;
      case (s_axil_araddr)
        22'h00: s_axil_rdata <= scratch;
        22'h1c: s_axil_rdata <= {14'd0, worst, done};
        default: s_axil_rdata <= 32'd0;
      endcase
    end
    if (s_axil_rvalid && s_axil_rready) s_axil_rvalid <= 1'b0;
    if (rst) begin
      have_aw <= 0; have_w <= 0; s_axil_bvalid <= 0; s_axil_rvalid <= 0; start <= 0;
      scratch <= 0; breaks <= 0;
    end
  end

  // Frames go back when they are complete.
  reg [9*LANES:0] store [0:511];
  reg [8:0] head, tail, frame;
  reg [8:0] whole;
  reg midway;
  wire entered = s_axis_rx_tvalid && s_axis_rx_tready && s_axis_rx_tlast && !s_axis_rx_tuser;
  wire free = !m_axis_tx_tvalid || m_axis_tx_tready;
  wire go = free && whole != 0 && !(breaks[0] && midway && m_axis_tx_tvalid);
  wire left = go && store[tail][9*LANES];
  assign pause_ack = pause_req;
  assign pause_send = 8'h00;
  assign s_axis_rx_tready = !breaks[1];
  assign m_axis_tx_tuser = 1'b0;
  always @(posedge clk) begin
    if (s_axis_rx_tvalid && s_axis_rx_tready) begin
      store[head] <= {s_axis_rx_tlast, s_axis_rx_tkeep, s_axis_rx_tdata};
      head <= head + 9'd1;
      if (s_axis_rx_tlast) begin
        if (s_axis_rx_tuser) head <= frame; else frame <= head + 9'd1;
      end
    end
    if (free) m_axis_tx_tvalid <= 1'b0;
    if (go) begin
      {m_axis_tx_tlast, m_axis_tx_tkeep, m_axis_tx_tdata} <= store[tail];
      m_axis_tx_tvalid <= 1'b1;
      tail <= tail + 9'd1;
      midway <= !left;
    end
    whole <= whole + {8'd0, entered} - {8'd0, left};
    if (rst) begin
      head <= 0; tail <= 0; frame <= 0; whole <= 0; midway <= 0; m_axis_tx_tvalid <= 0;
    end
  end

  // One copy at a time.
  reg [8*LANES-1:0] buffer [0:255];
  reg [7:0] got, sent;
  assign {m_axi_awid, m_axi_arid} = {4'd2, 4'd5};
  assign {m_axi_awsize, m_axi_arsize} = {2{SIZE}};
  assign {m_axi_awburst, m_axi_arburst} = {2'd1, 2'd1};
  assign {m_axi_awlen, m_axi_arlen} = {beats[7:0], beats[7:0]};
  assign m_axi_awaddr = target;
  assign m_axi_araddr = source;
  assign m_axi_wdata = buffer[sent];
  assign m_axi_wstrb = {LANES{1'b1}};
  assign m_axi_wlast = sent == beats[7:0];
  assign m_axi_rready = 1'b1;
  assign m_axi_bready = 1'b1;
  assign irq_vector = {9'd5, worst};
  localparam [2:0] SIZE = LANES == 64 ? 3'd6 : 3'd3;
  always @(posedge clk) begin
    if (start) begin m_axi_arvalid <= 1'b1; got <= 0; sent <= 0; worst <= 0; end
    if (m_axi_arvalid && m_axi_arready) m_axi_arvalid <= 1'b0;
    if (m_axi_rvalid) begin
      buffer[got] <= m_axi_rdata;
      got <= got + 8'd1;
      worst <= worst | m_axi_rresp;
      if (m_axi_rlast) begin m_axi_awvalid <= 1'b1; m_axi_wvalid <= 1'b1; end
    end
    if (m_axi_awvalid && m_axi_awready) m_axi_awvalid <= 1'b0;
    if (m_axi_wvalid && m_axi_wready) begin
      sent <= sent + 8'd1;
      if (m_axi_wlast) m_axi_wvalid <= 1'b0;
    end
    if (irq_valid && irq_ready) irq_valid <= 1'b0;
    if (m_axi_bvalid) begin
      done <= done + 16'd1;
      worst <= worst | m_axi_bresp;
      irq_valid <= 1'b1;
    end
    if (rst) begin
      m_axi_arvalid <= 0; m_axi_awvalid <= 0; m_axi_wvalid <= 0; irq_valid <= 0; done <= 0; worst <= 0;
    end
  end
endmodule
