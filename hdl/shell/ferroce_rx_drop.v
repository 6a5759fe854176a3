// Frames from a MAC that cannot be held up, into a queue that can be full: whole frames are dropped, and counted.
//
// In front of a `cdc_fifo`, whose `s_high` says that it is nearly full. A frame that begins then is dropped as a whole. One
// that is caught in the middle is ended with the error mark, which drops it behind the queue, and its rest is dropped here.
// So is one that a reset of the MAC cuts off. Latency: one cycle.
//
// `overflow` and `bad` are high for a cycle for each frame that is dropped here for want of room, and that the MAC marked.
module ferroce_rx_drop #(
    parameter WIDTH = 512
) (
    input  wire               clk,
    // The MAC's receive side is in reset.
    input  wire               mac_rst,
    // The queue is in reset: nothing is passed on, up to the end of the frame under way.
    input  wire               queue_rst,

    input  wire [WIDTH-1:0]   s_tdata,
    input  wire [WIDTH/8-1:0] s_tkeep,
    input  wire               s_tlast,
    input  wire               s_tuser,
    input  wire               s_tvalid,

    output reg  [WIDTH-1:0]   m_tdata,
    output reg  [WIDTH/8-1:0] m_tkeep,
    output reg                m_tlast,
    output reg                m_tuser,
    output reg                m_tvalid,
    input  wire               m_high,

    output reg                overflow,
    output reg                bad
);
    // In the middle of a frame, and what becomes of it.
    reg  midway;
    reg  dropping;

    wire drop  = queue_rst | (midway ? dropping : m_high);
    wire cut   = midway & ~drop & (mac_rst | (s_tvalid & ~s_tlast & m_high));
    wire pass  = s_tvalid & ~mac_rst & ~drop;

    always @(posedge clk) begin
        if (mac_rst) begin
            midway   <= 1'b0;
            dropping <= 1'b0;
        end else if (s_tvalid) begin
            midway   <= ~s_tlast;
            dropping <= drop | cut;
        end else if (queue_rst) begin
            dropping <= midway;
        end

        m_tvalid <= pass | cut;
        m_tdata  <= s_tdata;
        m_tkeep  <= cut ? {WIDTH/8{1'b1}} : s_tkeep;
        m_tlast  <= s_tlast | cut;
        m_tuser  <= s_tuser | cut;

        overflow <= ~queue_rst & ~mac_rst & s_tvalid & (midway ? cut : m_high);
        bad      <= pass & s_tlast & s_tuser;
    end
endmodule
