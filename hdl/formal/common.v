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

// What every queue of 16 words of RAM and a word in front keeps to: `read`, `write` and `items` are its pointers and its
// count, `held` says that the front has a word. `slot` is the place in the RAM of the watched item, `front` says that it
// is the one offered, `item` which it is.
module formal_fifo #(
    parameter W = 8
) (
    input clk,
    input rst,
    input [W-1:0] s_payload,
    input s_valid,
    input s_ready,
    input [W-1:0] m_payload,
    input m_valid,
    input m_ready,
    input [15:0] level,
    input [15:0] read,
    input [15:0] write,
    input [15:0] items,
    input full,
    input empty,
    input held,
    output [4:0] slot,
    output front,
    output watching,
    output [W-1:0] item
);
    wire [7:0] count, ahead;
    wire [15:0] stored = items - held;
    formal_reset reset (.clk(clk), .rst(rst));
    formal_order #(.W(W)) order (
        .clk(clk), .rst(rst), .push(s_valid && s_ready), .pushed(s_payload), .pop(m_valid && m_ready),
        .popped(m_payload), .level(count), .watching(watching), .ahead(ahead), .item(item)
    );
    formal_stable #(.W(W)) stable (.clk(clk), .rst(rst), .payload(m_payload), .valid(m_valid), .ready(m_ready));
    // the slot of the watched item
    assign slot = read + ahead - held;
    assign front = held && ahead == 0;
    always @* if (!rst) begin
        assert (level == count);
        assert (s_ready || count == 17);
        assert (count <= 17);
        assert (m_valid == (count != 0));
        // where the items are
        assert (items == count);
        assert (read < 32 && write < 32);
        assert (stored <= 16 && stored[4:0] == write[4:0] - read[4:0]);
        assert (full == (stored == 16));
        assert (empty == (stored == 0));
        cover (count == 17);
    end
endmodule
