// Says: An address on AR does not change until it is taken. A burst is of type INCR and full width, has at most 256
// beats, and crosses no multiple of 4096. The list of a client's bursts under way never overflows, and holds what was
// issued and not yet answered. Each beat goes to the client of its ID and to no other. A beat is marked last if it
// ends a burst that its list (see `fifo`) has as the end of a request (one of each, see `split`): one answer a
// request, in order. `idle` means that no burst is under way. RREADY is constant 1.
// Assumes: Requests of 1 to 8191 bytes. The slave answers only bursts that it took, no sooner than a cycle after it
// took them, those of one ID in order (AXI4 A5.3).
module check_dma_read #(
    parameter N = 9
) (
    input clk,
    input rst,
    input [N-1:0] asks, // = each(9, request_#_valid)
    input [N-1:0] taken, // = each(9, request_#_ready)
    input [13*N-1:0] lens, // = each(9, request_#_payload.len)
    input arvalid, // = m_axi_arvalid
    input arready, // = m_axi_arready
    input [3:0] arid, // = m_axi_arid
    input [63:0] araddr, // = m_axi_araddr
    input [7:0] arlen, // = m_axi_arlen
    input [2:0] arsize, // = m_axi_arsize
    input [1:0] arburst, // = m_axi_arburst
    input rvalid, // = m_axi_rvalid
    input rready, // = m_axi_rready
    input [3:0] rid, // = m_axi_rid
    input rlast, // = m_axi_rlast
    input [63:0] rdata, // = m_axi_rdata
    input [N-1:0] beats, // = each(9, beats_#_valid)
    input [N-1:0] marks, // = each(9, beats_#_last)
    input [64*N-1:0] data, // = each(9, beats_#_data)
    input idle,
    input [15:0] open, // = open_q
    input [N-1:0] room, // = room_q
    // the splitter
    input cuts, // = u_split.valid_q
    input [63:0] cut_addr, // = u_split.addr_q
    input [12:0] cut_rest, // = u_split.rest_q
    input [3:0] cut_tag, // = u_split.tag_q
    input cut_last, // = u_split.fits_q
    // the register before AR: address, length, last, tag from bit 0 up
    input out_valid, // = u_address.out_valid_q
    input spare_valid, // = u_address.spare_valid_q
    input [76:0] out, // = u_address.out_q
    input [76:0] spare, // = u_address.spare_q
    // the lists
    input [N-1:0] pushes, // = each(9, u_ends_#.s_valid)
    input [N-1:0] fits, // = each(9, u_ends_#.s_ready)
    input [16*N-1:0] levels, // = each(9, u_ends_#.items_q)
    input [N-1:0] fulls, // = each(9, u_ends_#.full_q)
    input [N-1:0] empties, // = each(9, u_ends_#.empty_q)
    input [N-1:0] helds, // = each(9, u_ends_#.held_q)
    input [N-1:0] firsts // = each(9, u_ends_#.m_payload)
);
    formal_reset reset (.clk(clk), .rst(rst));
    formal_stable #(.W(72)) stable (
        .clk(clk), .rst(rst), .payload({araddr, arlen}), .valid(arvalid), .ready(arready)
    );
    formal_stable #(.W(4)) stable_id (.clk(clk), .rst(rst), .payload(arid), .valid(arvalid), .ready(arready));
    integer i;
    always @* for (i = 0; i < N; i = i + 1) assume (lens[13*i +: 13] != 0);

    // Any client, and what stands in its list.
    (* anyconst *) reg [3:0] c;
    always @* assume (c < N);
    wire [15:0] under_way = levels >> {c, 4'd0};
    wire [63:0] its_data = data >> {c, 6'd0};
    wire held = helds[c];
    wire [15:0] stored = under_way - held;
    wire ends_burst = rvalid && rid == c && rlast;

    // Taken by the slave and not answered: of the client, and of all.
    reg [7:0] owed = 0;
    reg [15:0] all_owed = 0;
    reg was_c, was_last;
    reg [63:0] was_data;
    always @(posedge clk) begin
        owed <= rst ? 0 : owed + (arvalid && arready && arid == c) - ends_burst;
        all_owed <= rst ? 0 : all_owed + (arvalid && arready) - (rvalid && rlast);
        was_c <= !rst && rvalid && rid == c;
        was_last <= !rst && rlast && firsts[c];
        was_data <= rdata;
    end
    always @* if (rvalid) begin
        assume (all_owed != 0);
        if (rid == c) assume (owed != 0);
    end

    // Bursts still to be cut from the client's request.
    wire [13:0] reach = cut_addr[10:0] + cut_rest;
    wire [2:0] coming = cuts && cut_tag == c ? reach[13:11] + 1 : 0;
    wire [1:0] waiting = (out_valid && out[76:73] == c) + (spare_valid && spare[76:73] == c);
    wire [63:0] final = {araddr[63:3], 3'd0} + {arlen, 3'd0};
    wire [63:0] final_out = {out[63:3], 3'd0} + {out[71:64], 3'd0};
    wire [63:0] final_spare = {spare[63:3], 3'd0} + {spare[71:64], 3'd0};
    always @* if (!rst) begin
        assert (rready && arsize == 3 && arburst == 1);
        if (arvalid) assert (araddr[63:12] == final[63:12]);
        if (pushes[c]) assert (fits[c]);
        assert (under_way == owed + waiting);
        assert (idle == (open == 0));
        assert (open == all_owed + out_valid + spare_valid);
        assert (beats[c] == was_c);
        if (beats[c]) assert (marks[c] == was_last && its_data == was_data);
        // the list
        assert (stored < 32);
        assert (fulls[c] == (under_way == 32) && empties[c] == (stored == 0));
        assert (empties[c] || held);
        // no more than 16 when a request is let in, a burst on its way then, and 5 of the request
        if (room[c]) assert (under_way <= 16);
        assert (under_way + coming <= 22);
        if (cuts) assert (cut_last == (reach < 14'd2048));
        // the register before AR
        assert (out_valid || !spare_valid);
        if (out_valid) assert (out[63:11] == final_out[63:11]);
        if (spare_valid) assert (spare[63:11] == final_spare[63:11]);
        cover (under_way == 3 && ends_burst);
        cover (beats[c] && marks[c] && c == 8);
        cover (arvalid && arlen == 255);
    end
endmodule
