// Reset synchroniser: `rst` is high from the moment `arst` is, with or without a clock, and falls with an edge of `clk`,
// four edges after `arst`.
//
// Blocks that hold pointers of a crossing use `rst` as an asynchronous reset, so that they start afresh even if the clock
// stood still meanwhile; all others use it as a synchronous one.
(* keep_hierarchy = "yes" *)
module ferroce_cdc_reset (
    input  wire clk,
    input  wire arst,
    output wire rst
);
    (* ASYNC_REG = "TRUE" *) reg [3:0] chain = 4'hf;

    always @(posedge clk or posedge arst) begin
        if (arst) chain <= 4'hf;
        else      chain <= {chain[2:0], 1'b0};
    end

    assign rst = chain[3];
endmodule
