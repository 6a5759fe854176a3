// Says: Each item that enters leaves once, in order and unchanged. An offer does not change until it is taken. An item
// is offered in the cycle after it entered, and an empty stage takes two items while the receiver takes none.
// Assumes: nothing.
module check_skid_ram (
    input clk,
    input rst,
    input [7:0] s_payload,
    input s_valid,
    input s_ready,
    input [7:0] m_payload,
    input m_valid,
    input m_ready,
    input out_valid, // = out_valid_q
    input spare_valid, // = spare_valid_q
    input write, // = write_q
    input read, // = read_q
    input [4:0] shown, // = u_ram.shown
    output [4:0] slot,
    input [7:0] word // = u_ram.mem[slot]
);
    wire [7:0] level, ahead, item;
    wire watching;
    formal_reset reset (.clk(clk), .rst(rst));
    formal_order order (
        .clk(clk), .rst(rst), .push(s_valid && s_ready), .pushed(s_payload), .pop(m_valid && m_ready),
        .popped(m_payload), .level(level), .watching(watching), .ahead(ahead), .item(item)
    );
    formal_stable stable (.clk(clk), .rst(rst), .payload(m_payload), .valid(m_valid), .ready(m_ready));
    // the slot of the watched item
    assign slot = {4'd0, !read ^ ahead[0]};
    always @* if (!rst) begin
        assert (m_valid == (level != 0));
        assert (s_ready == (level < 2));
        // where the items are
        assert (level == out_valid + spare_valid);
        assert (write == read ^ spare_valid);
        if (out_valid) assert (shown == !read);
        if (watching) assert (word == item);
        cover (level == 2);
    end
endmodule
