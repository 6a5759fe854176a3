// Two registers of a stream: no path from `m_ready` to `s_ready`, nor from `s_data` to `m_data`.
//
// A beat a cycle, and no gap that was not there. Latency: one cycle. `rst` forgets what is held.
module ferroce_mac_skid #(
    parameter WIDTH = 578
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [WIDTH-1:0] s_data,
    input  wire             s_valid,
    output wire             s_ready,
    output reg  [WIDTH-1:0] m_data,
    output reg              m_valid,
    input  wire             m_ready
);
    // What came when `m_data` was not taken.
    reg [WIDTH-1:0] spare;
    reg             spared;

    wire free = ~m_valid | m_ready;

    assign s_ready = ~spared;

    always @(posedge clk) begin
        if (free) m_data <= spared ? spare : s_data;
        if (~spared) spare <= s_data;

        if (rst) begin
            m_valid <= 1'b0;
            spared  <= 1'b0;
        end else begin
            m_valid <= ~free | spared | s_valid;
            spared  <= ~free & (spared | s_valid);
        end
    end

    initial begin
        m_valid = 1'b0;
        spared  = 1'b0;
    end
endmodule
