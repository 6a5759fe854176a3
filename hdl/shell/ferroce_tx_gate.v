// Last stage in front of a MAC: pads to the smallest frame, and drops frames while the link is down.
//
// A frame of less than 60 bytes (64 with its FCS) is padded with zeros; bytes that are not kept are zeros too. A frame that
// begins while `up` is low is dropped and reported by `dropped`, high for a cycle: nothing ever waits for a link. One of which
// the MAC has the beginning when `up` falls, or when the queue in front is reset, gets a last beat with the error mark, so
// that the MAC spoils it, and its rest is dropped. A reset of the MAC forgets what it has begun. Latency: one cycle.
//
// Precondition: WIDTH > 480, so that the smallest frame is one beat.
module ferroce_tx_gate #(
    parameter WIDTH = 512
) (
    input  wire               clk,
    // The MAC's transmit side is in reset.
    input  wire               mac_rst,
    // The queue in front is in reset.
    input  wire               queue_rst,
    input  wire               up,

    input  wire [WIDTH-1:0]   s_tdata,
    input  wire [WIDTH/8-1:0] s_tkeep,
    input  wire               s_tlast,
    input  wire               s_tuser,
    input  wire               s_tvalid,
    output wire               s_tready,

    output reg  [WIDTH-1:0]   m_tdata,
    output reg  [WIDTH/8-1:0] m_tkeep,
    output reg                m_tlast,
    output reg                m_tuser,
    output reg                m_tvalid,
    input  wire               m_tready,

    output reg                dropped
);
    localparam K = WIDTH / 8;

    // In the middle of a frame, and whether it is dropped.
    reg midway;
    reg dropping;
    // The MAC has a beginning to which there is no end.
    reg owe;

    wire free  = ~m_tvalid | m_tready;
    wire drop  = mac_rst | queue_rst | (midway ? dropping | ~up : owe | ~up);
    wire go    = s_tvalid & s_tready;
    wire pass  = go & ~drop;
    wire cut_off = midway & ~dropping & drop & ~mac_rst;

    // The MAC gets the end of what is cut off at once: a frame to it has no gap.
    wire spoils = owe | cut_off;

    assign s_tready = drop | free;

    wire [K-1:0] keep = s_tkeep | {{K-60{1'b0}}, {60{~midway}}};
    wire [WIDTH-1:0] clean;
    genvar i;
    generate
        for (i = 0; i < K; i = i + 1) begin : bytes
            assign clean[8*i+7:8*i] = s_tdata[8*i+7:8*i] & {8{s_tkeep[i]}};
        end
    endgenerate

    always @(posedge clk) begin
        if (queue_rst)   midway <= 1'b0;
        else if (go)     midway <= ~s_tlast;

        if (go & ~midway) dropping <= drop;
        else if (drop)    dropping <= 1'b1;

        if (mac_rst)    owe <= 1'b0;
        else if (free)  owe <= 1'b0;
        else if (cut_off) owe <= 1'b1;

        if (mac_rst)   m_tvalid <= 1'b0;
        else if (free) m_tvalid <= pass | spoils;

        if (free) begin
            m_tdata <= clean;
            m_tkeep <= spoils ? {K{1'b1}} : keep;
            m_tlast <= spoils | s_tlast;
            m_tuser <= spoils | s_tuser;
        end
        dropped <= go & s_tlast & drop;
    end

    initial begin
        midway   = 1'b0;
        dropping = 1'b1;
        owe      = 1'b0;
        m_tvalid = 1'b0;
    end
endmodule
