// Says: A range of bytes leaves as bursts in order of address. Together they are its bytes, rounded out to whole
// beats. Only the last burst is marked. A burst is within one multiple of 2048 bytes (256 beats of 8), so it crosses
// no multiple of 4096. It carries the tag of its range. An offer does not change until it is taken.
// Assumes: Ranges of 1 to 8191 bytes. An input indicates whether they end in the multiple of 2048 of their first byte
// (shown with `dma_read`).
module check_split (
    input clk,
    input rst,
    input s_valid,
    input s_ready,
    input [63:0] addr, // = s_payload.addr
    input [12:0] more, // = s_payload.more
    input [3:0] tag, // = s_payload.tag
    input s_fits,
    input m_valid,
    input m_ready,
    input [76:0] m_payload,
    input [63:0] burst, // = m_payload.addr
    input [7:0] beats, // = m_payload.len
    input last, // = m_payload.last
    input [3:0] its_tag, // = m_payload.tag
    input [63:0] addr_q,
    input [12:0] rest // = rest_q
);
    formal_reset reset (.clk(clk), .rst(rst));
    formal_stable #(.W(77)) stable (
        .clk(clk), .rst(rst), .payload(m_payload), .valid(m_valid), .ready(m_ready)
    );
    wire [12:0] len = more + 13'd1;
    always @* assume (len != 0);
    always @* assume (s_fits == ({3'd0, addr[10:0]} + len <= 14'd2048));
    // What is left of the range under way.
    reg busy = 0;
    reg [63:0] next;
    reg [12:0] left;
    reg [3:0] owner;
    // Bytes of the burst from its first one to the end of its last beat.
    wire [11:0] bytes = {beats + 9'd1, 3'd0} - burst[2:0];
    always @(posedge clk) begin
        if (m_valid && m_ready) begin
            next <= next + bytes;
            left <= left - bytes;
            if (last) busy <= 0;
        end
        if (s_valid && s_ready) begin
            busy <= 1;
            next <= addr;
            left <= len;
            owner <= tag;
        end
        if (rst) busy <= 0;
    end
    wire [63:0] final = {burst[63:3], 3'd0} + {beats, 3'd0};
    always @* if (!rst) begin
        assert (m_valid == busy);
        if (m_valid) begin
            assert (burst == next);
            assert (its_tag == owner);
            assert (burst[63:11] == final[63:11]);
            // The last burst reaches the beat of the last byte and not one further, the others not so far.
            if (last) assert (bytes >= left && bytes < left + 8);
            else assert (bytes < left);
            // registers
            assert (left != 0 && rest == left - 13'd1);
            assert (addr_q == next);
            assert (last == ({3'd0, burst[10:0]} + rest < 14'd2048));
        end
        cover (m_valid && m_ready && last && left != 0 && owner == 5);
        cover (m_valid && !last && beats == 255);
    end
endmodule
