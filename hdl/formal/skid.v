// Says: Each item that enters leaves once, in order and unchanged. An offer does not change until it is taken. An item
// is offered in the cycle after it entered, and an empty stage takes two items while the receiver takes none.
// Assumes: nothing.
module check_skid (
    input clk,
    input rst,
    input [7:0] s_payload,
    input s_valid,
    input s_ready,
    input [7:0] m_payload,
    input m_valid,
    input m_ready,
    input [7:0] out, // = out_q
    input [7:0] spare, // = spare_q
    input out_valid, // = out_valid_q
    input spare_valid // = spare_valid_q
);
    wire [7:0] level, ahead, item;
    wire watching;
    formal_reset reset (.clk(clk), .rst(rst));
    formal_order order (
        .clk(clk), .rst(rst), .push(s_valid && s_ready), .pushed(s_payload), .pop(m_valid && m_ready),
        .popped(m_payload), .level(level), .watching(watching), .ahead(ahead), .item(item)
    );
    formal_stable stable (.clk(clk), .rst(rst), .payload(m_payload), .valid(m_valid), .ready(m_ready));
    always @* if (!rst) begin
        assert (m_valid == (level != 0));
        assert (s_ready == (level < 2));
        // where the items are
        assert (level == out_valid + spare_valid);
        if (watching) assert ((ahead == 0 ? out : spare) == item);
        cover (level == 2);
    end
endmodule
