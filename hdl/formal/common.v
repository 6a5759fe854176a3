// Reset in the first cycle, and not again.
module formal_reset (
    input clk,
    input rst
);
    reg begun = 0;
    always @(posedge clk) begun <= 1;
    always @* assume (rst == !begun);
endmodule

// Items go in by `push` and come out by `pop`: none out of nothing, and an item chosen by the solver comes out after
// those that were in before it and before those that came later, as it went in. A block without loss and duplication
// has `level` items inside, the chosen one behind `ahead` others.
module formal_order #(
    parameter W = 8,
    parameter L = 8
) (
    input clk,
    input rst,
    input push,
    input [W-1:0] pushed,
    input pop,
    input [W-1:0] popped,
    output reg [L-1:0] level,
    output reg watching,
    output reg [L-1:0] ahead,
    output reg [W-1:0] item
);
    (* anyseq *) reg choose;
    always @(posedge clk) begin
        level <= level + push - pop;
        if (watching) begin
            if (pop) ahead <= ahead - 1;
            if (pop && ahead == 0) watching <= 0;
        end else if (push && choose) begin
            watching <= 1;
            ahead <= level - pop;
            item <= pushed;
        end
        if (rst) begin
            level <= 0;
            watching <= 0;
        end
    end
    always @* if (!rst) begin
        if (pop) assert (level != 0);
        if (watching) assert (ahead < level);
        if (watching && pop && ahead == 0) assert (popped == item);
        cover (watching && pop && ahead == 0);
    end
endmodule

// An offer stands, unchanged, until it is taken.
module formal_stable #(
    parameter W = 8
) (
    input clk,
    input rst,
    input [W-1:0] payload,
    input valid,
    input ready
);
    reg waits = 0;
    reg [W-1:0] held;
    always @(posedge clk) begin
        waits <= valid && !ready && !rst;
        held <= payload;
    end
    always @* if (!rst && waits) begin
        assert (valid && payload == held);
        cover (ready);
    end
endmodule
