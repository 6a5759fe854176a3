// Says: every item that goes in comes out once, in order and unchanged; an offer stands until it is taken; the queue
// holds 16 items, says how many it holds, and never refuses an item while it has room; an item is offered two cycles
// after it came, or in the cycle after the one before it was taken.
// Assumes: nothing.
module check_deep (
    input clk,
    input rst,
    input [7:0] s_payload,
    input s_valid,
    input s_ready,
    input [7:0] m_payload,
    input m_valid,
    input m_ready,
    input [15:0] level,
    input [3:0] read, // = read_q
    input [3:0] write, // = write_q
    input [15:0] items, // = items_q
    input empty, // = empty_q
    input held, // = held_q
    output [3:0] slot,
    input [7:0] word // = u_ram.mem[slot]
);
    wire watching;
    wire [7:0] count, ahead, item;
    formal_reset reset (.clk(clk), .rst(rst));
    formal_order order (
        .clk(clk), .rst(rst), .push(s_valid && s_ready), .pushed(s_payload), .pop(m_valid && m_ready),
        .popped(m_payload), .level(count), .watching(watching), .ahead(ahead), .item(item)
    );
    formal_stable stable (.clk(clk), .rst(rst), .payload(m_payload), .valid(m_valid), .ready(m_ready));
    wire [15:0] stored = items - held;
    // the slot of the watched item
    assign slot = read + ahead - held;
    reg waits = 0;
    always @(posedge clk) waits <= !rst && count != 0 && !m_valid;
    always @* if (!rst) begin
        assert (level == count);
        assert (s_ready == (count != 16));
        assert (count <= 16);
        assert (!waits || m_valid);
        assert (m_valid || count <= 1);
        // where the items are
        assert (items == count && held == m_valid);
        assert (stored <= 16 && stored[3:0] == write - read);
        assert (empty == (stored == 0));
        if (watching && held && ahead == 0) assert (m_payload == item);
        else if (watching) assert (word == item);
        cover (count == 16);
    end
endmodule
