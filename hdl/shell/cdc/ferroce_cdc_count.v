// Counter that crosses: counts the cycles of `src_clk` with `event_in`; `count` is that number in the domain of `dst_clk`.
//
// Exact at an event a cycle: the number crosses in Gray code, a bit changes a step. `count` is late by at most a cycle of
// `src_clk` and five of `dst_clk`. It wraps. Both resets come from one source, see `cdc_reset`.
(* keep_hierarchy = "yes" *)
module ferroce_cdc_count #(
    parameter WIDTH = 32
) (
    input  wire             src_clk,
    input  wire             src_rst,
    input  wire             event_in,
    input  wire             dst_clk,
    input  wire             dst_rst,
    output reg  [WIDTH-1:0] count
);
    // The highest bit of both is one register: a second one would be merged with it, and not be found by the constraints.
    reg  [WIDTH-1:0] gray;
    reg  [WIDTH-2:0] low;
    wire [WIDTH-1:0] number = {gray[WIDTH-1], low};
    wire [WIDTH-1:0] next = number + {{WIDTH-1{1'b0}}, event_in};

    always @(posedge src_clk or posedge src_rst) begin
        if (src_rst) begin
            low  <= 0;
            gray <= 0;
        end else begin
            low  <= next[WIDTH-2:0];
            gray <= next ^ (next >> 1);
        end
    end

    (* ASYNC_REG = "TRUE" *) reg [WIDTH-1:0] meta;
    (* ASYNC_REG = "TRUE" *) reg [WIDTH-1:0] mid;
    (* ASYNC_REG = "TRUE" *) reg [WIDTH-1:0] last;

    always @(posedge dst_clk or posedge dst_rst) begin
        if (dst_rst) begin
            meta <= 0;
            mid  <= 0;
            last <= 0;
        end else begin
            meta <= gray;
            mid  <= meta;
            last <= mid;
        end
    end

    // Gray to binary in two steps, so that 32 bits are no long path: parity within groups of 8, then of the groups above.
    localparam GROUPS = (WIDTH + 7) / 8;
    localparam W = 8 * GROUPS;
    wire [W-1:0]    wide = {{W-WIDTH{1'b0}}, last};
    reg  [W-1:0]    part;
    wire [W-1:0]    total;
    wire [GROUPS:1] whole;

    assign whole[GROUPS] = 1'b0;
    genvar i;
    generate
        for (i = 1; i < GROUPS; i = i + 1) begin : groups
            assign whole[i] = part[8*i];
        end
        for (i = 0; i < W; i = i + 1) begin : bits
            always @(posedge dst_clk) part[i] <= ^wide[i|7:i];
            assign total[i] = part[i] ^ (^whole[GROUPS:i/8+1]);
        end
    endgenerate

    always @(posedge dst_clk) count <= total[WIDTH-1:0];
endmodule
