// Level synchroniser: each bit of `d`, by itself, in the domain of `clk`, three edges later.
//
// The bits have nothing to do with each other: a number crosses by `cdc_count` or `cdc_fifo`. `d` comes from a register.
(* keep_hierarchy = "yes" *)
module ferroce_cdc_level #(
    parameter WIDTH = 1
) (
    input  wire             clk,
    input  wire [WIDTH-1:0] d,
    output wire [WIDTH-1:0] q
);
    (* ASYNC_REG = "TRUE" *) reg [WIDTH-1:0] meta;
    (* ASYNC_REG = "TRUE" *) reg [WIDTH-1:0] mid;
    (* ASYNC_REG = "TRUE" *) reg [WIDTH-1:0] last;

    always @(posedge clk) begin
        meta <= d;
        mid  <= meta;
        last <= mid;
    end

    assign q = last;
endmodule
