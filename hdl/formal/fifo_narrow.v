// The queue of items of a few bits, whose RAM registers the word it shows.
// Says: Each item that enters leaves once, in order and unchanged. An offer does not change until it is taken. The
// queue holds 17 items, reports how many it holds, and never refuses an item while it has room. An item is offered in
// the cycle after it entered, or after the item before it was taken.
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
    wire watching, front;
    wire [1:0] item;
    formal_fifo #(.W(2)) fifo (
        .clk(clk), .rst(rst), .s_payload(s_payload), .s_valid(s_valid), .s_ready(s_ready), .m_payload(m_payload),
        .m_valid(m_valid), .m_ready(m_ready), .level(level), .read(read), .write(write), .items(items), .full(full),
        .empty(empty), .held(held), .slot(slot), .front(front), .watching(watching), .item(item)
    );
    always @* if (!rst) begin
        if (watching) assert ((front ? shown : word) == item);
    end
endmodule
