// The queue of items of a few bits, whose RAM registers the word it shows.
// Says: every item that goes in comes out once, in order and unchanged; an offer stands until it is taken; the queue
// holds 17 items, says how many it holds, never refuses an item while it has room, and offers an item in the cycle after
// it came, or after the one before it was taken.
// Assumes: nothing.
module check_fifo_narrow (
    input clk,
    input rst,
    input [1:0] s_payload,
    input s_valid,
    input s_ready,
    input [1:0] m_payload,
    input m_valid,
    input m_ready,
    input [15:0] level,
    input [15:0] read, // = read_q
    input [15:0] write, // = write_q
    input [15:0] items, // = items_q
    input full, // = full_q
    input empty, // = empty_q
    input held, // = held_q
    input [1:0] shown, // = u_ram.word
    output [4:0] slot,
    input [1:0] word // = u_ram.mem[slot]
);
    wire [7:0] count, ahead;
    wire [1:0] item;
    wire [15:0] stored = items - held;
    wire watching;
    formal_reset reset (.clk(clk), .rst(rst));
    formal_order #(.W(2)) order (
        .clk(clk), .rst(rst), .push(s_valid && s_ready), .pushed(s_payload), .pop(m_valid && m_ready),
        .popped(m_payload), .level(count), .watching(watching), .ahead(ahead), .item(item)
    );
    formal_stable #(.W(2)) stable (.clk(clk), .rst(rst), .payload(m_payload), .valid(m_valid), .ready(m_ready));
    // the slot of the watched item
    assign slot = read + ahead - held;
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
        if (watching) assert ((held && ahead == 0 ? shown : word) == item);
        cover (count == 17);
    end
endmodule
