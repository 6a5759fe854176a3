// Registers of the shell: a page of BAR0 that the engine does not use, read only.
//
// | offset | is |
// |---|---|
// | 0x8000 | 0x4c4c4853, "SHLL": there is a shell |
// | 0x8004 | version of this page: major in the high half, minor in the low half |
// | 0x8008 | [0] link up, [1] lanes aligned, [2] remote fault, [3] local fault |
// | 0x800c | received frames dropped between the MAC and the engine because the queue was full |
// | 0x8010 | received frames that the MAC marked as bad (FCS, length) |
// | 0x8014 | frames to send dropped because the link was down |
// | 0x8018 | times that the link went down |
// | 0x801c | interrupts that the PCIe block refused |
//
// Counters are 32 bits and wrap. Everything else of BAR0, and all writes, pass through to the engine. Answers keep the order
// of the reads. A read of the page waits for the engine's reads before it.
module ferroce_shell_page (
    input  wire        clk,
    input  wire        rst,

    input  wire [21:0] s_axil_araddr,
    input  wire        s_axil_arvalid,
    output wire        s_axil_arready,
    output wire [31:0] s_axil_rdata,
    output wire [1:0]  s_axil_rresp,
    output wire        s_axil_rvalid,
    input  wire        s_axil_rready,

    output wire [21:0] m_axil_araddr,
    output wire        m_axil_arvalid,
    input  wire        m_axil_arready,
    input  wire [31:0] m_axil_rdata,
    input  wire [1:0]  m_axil_rresp,
    input  wire        m_axil_rvalid,
    output wire        m_axil_rready,

    input  wire [3:0]  link_status,
    input  wire [31:0] rx_overflow,
    input  wire [31:0] rx_bad,
    input  wire [31:0] tx_dropped,
    input  wire        irq_refused
);
    localparam [9:0]  PAGE    = 10'h008;
    localparam [31:0] MAGIC   = 32'h4c4c4853;
    localparam [31:0] VERSION = 32'h0001_0000;

    // Reads of the engine that have no answer yet.
    reg [7:0]  waiting;
    // The answer of this page.
    reg        answer;
    reg [31:0] word;

    reg        was_up;
    reg [31:0] link_downs;
    reg [31:0] irqs_refused;

    wire here = s_axil_araddr[21:12] == PAGE;
    wire open = ~answer & ~rst & waiting != 8'hff;
    wire take = s_axil_arvalid & here & open & waiting == 0;
    wire sent = m_axil_arvalid & m_axil_arready;
    wire back = m_axil_rvalid & m_axil_rready;

    assign m_axil_araddr  = s_axil_araddr;
    assign m_axil_arvalid = s_axil_arvalid & ~here & open;
    assign s_axil_arready = here ? take : m_axil_arready & open;
    assign s_axil_rdata   = answer ? word : m_axil_rdata;
    assign s_axil_rresp   = answer ? 2'b00 : m_axil_rresp;
    assign s_axil_rvalid  = answer | m_axil_rvalid;
    assign m_axil_rready  = s_axil_rready & ~answer;

    always @(posedge clk) begin
        if (take) begin
            case (s_axil_araddr[11:2])
                10'd0:   word <= MAGIC;
                10'd1:   word <= VERSION;
                10'd2:   word <= {28'd0, link_status};
                10'd3:   word <= rx_overflow;
                10'd4:   word <= rx_bad;
                10'd5:   word <= tx_dropped;
                10'd6:   word <= link_downs;
                10'd7:   word <= irqs_refused;
                default: word <= 32'd0;
            endcase
        end
        if (rst) begin
            waiting      <= 8'd0;
            answer       <= 1'b0;
            was_up       <= 1'b0;
            link_downs   <= 32'd0;
            irqs_refused <= 32'd0;
        end else begin
            waiting      <= waiting + {7'd0, sent} - {7'd0, back};
            answer       <= take | (answer & ~s_axil_rready);
            was_up       <= link_status[0];
            link_downs   <= link_downs + {31'd0, was_up & ~link_status[0]};
            irqs_refused <= irqs_refused + {31'd0, irq_refused};
        end
    end

    // The lowest bits of an address within a word.
    wire unused = &{1'b0, s_axil_araddr[1:0]};
endmodule
