// Says: An offer on AW and W does not change until it is taken. Each command leaves on AW once, in order, with its
// address, its length and the ID of its client, as a burst of type INCR and full width. W carries the beats of the
// commands in the order of AW, as many of each as AWLEN says, with WLAST on the last one alone. `issued` and `done` of
// a client count its commands taken and its responses. `idle` means that no burst is under way. BREADY is constant 1.
// Assumes: The client marks the last beat of a command and no other. The slave gives a response only for a burst after
// it took its address. Not shown: that a command crosses no multiple of 4096, which its client ensures.
module check_dma_write #(
    parameter N = 6
) (
    input clk,
    input rst,
    input [N-1:0] asks, // = each(6, command_#_valid)
    input [N-1:0] taken, // = each(6, command_#_ready)
    input [8*N-1:0] lens, // = each(6, command_#_payload.len)
    input [64*N-1:0] addrs, // = each(6, command_#_payload.addr)
    input [N-1:0] beats, // = each(6, beats_#_valid)
    input [N-1:0] beats_taken, // = each(6, beats_#_ready)
    input [N-1:0] lasts, // = each(6, beats_#_last)
    input awvalid, // = m_axi_awvalid
    input awready, // = m_axi_awready
    input [3:0] awid, // = m_axi_awid
    input [63:0] awaddr, // = m_axi_awaddr
    input [7:0] awlen, // = m_axi_awlen
    input [2:0] awsize, // = m_axi_awsize
    input [1:0] awburst, // = m_axi_awburst
    input wvalid, // = m_axi_wvalid
    input wready, // = m_axi_wready
    input [63:0] wdata, // = m_axi_wdata
    input [7:0] wstrb, // = m_axi_wstrb
    input wlast, // = m_axi_wlast
    input bvalid, // = m_axi_bvalid
    input bready, // = m_axi_bready
    input [3:0] bid, // = m_axi_bid
    input [16*N-1:0] issues, // = each(6, issued_#)
    input [16*N-1:0] dones, // = each(6, done_#)
    input idle,
    input [15:0] open, // = open_q
    // the register before AW: address, length, last, tag from bit 0 up
    input out_valid, // = u_address.out_valid_q
    input spare_valid, // = u_address.spare_valid_q
    input [76:0] spare, // = u_address.spare_q
    // whose beats are next
    input owned, // = u_owner.out_valid_q
    input owned_next, // = u_owner.spare_valid_q
    input [N-1:0] owner, // = u_owner.out_q
    input [N-1:0] owner_next, // = u_owner.spare_q
    // the register before W
    input w_valid, // = u_last.out_valid_q
    input w_spare, // = u_last.spare_valid_q
    input w_spare_last, // = u_last.spare_q
    input data_valid, // = u_data.out_valid_q
    input data_spare, // = u_data.spare_valid_q
    input strb_valid, // = u_strb.out_valid_q
    input strb_spare // = u_strb.spare_valid_q
);
    formal_reset reset (.clk(clk), .rst(rst));
    formal_stable #(.W(76)) stable_aw (
        .clk(clk), .rst(rst), .payload({awid, awaddr, awlen}), .valid(awvalid), .ready(awready)
    );
    formal_stable #(.W(73)) stable_w (
        .clk(clk), .rst(rst), .payload({wlast, wstrb, wdata}), .valid(wvalid), .ready(wready)
    );

    // The command that is taken, and the beat.
    reg [3:0] client;
    reg [9:0] len;
    reg [63:0] addr;
    integer i;
    always @* begin
        client = 0;
        len = 0;
        addr = 0;
        for (i = 0; i < N; i = i + 1) begin
            if (asks[i] && taken[i]) begin
                client = i;
                len = lens[8*i +: 8];
                addr = addrs[64*i +: 64];
            end
        end
    end
    wire [N-1:0] takes = asks & taken;
    wire [N-1:0] moves = beats & beats_taken;
    wire take = takes != 0;
    wire move = moves != 0;
    wire ends_burst = (moves & lasts) != 0;
    wire out = wvalid && wready;

    // AW: each command once, in order.
    wire [7:0] level, ahead;
    wire [75:0] item;
    wire watching;
    formal_order #(.W(76)) order (
        .clk(clk), .rst(rst), .push(take), .pushed({client, addr, len[7:0]}), .pop(awvalid && awready),
        .popped({awid, awaddr, awlen}), .level(level), .watching(watching), .ahead(ahead), .item(item)
    );

    // Lengths and clients of the commands whose last beat has not left, oldest in the lowest bits.
    reg [8*5-1:0] q_len;
    reg [4*5-1:0] q_client;
    reg [2:0] q;
    // Beats of the burst under way: come in, and gone out.
    reg [8:0] in_count, out_count;
    wire [2:0] left = q - (out && wlast);
    always @(posedge clk) begin
        q <= left + take;
        q_len <= (out && wlast ? q_len >> 8 : q_len) & ~(40'hff << 8 * left) | (take ? {32'd0, len[7:0]} << 8 * left : 0);
        q_client <= (out && wlast ? q_client >> 4 : q_client) & ~(20'hf << 4 * left)
            | (take ? {16'd0, client} << 4 * left : 0);
        if (move) in_count <= ends_burst ? 0 : in_count + 1;
        if (out) out_count <= wlast ? 0 : out_count + 1;
        if (rst) begin
            q <= 0;
            in_count <= 0;
            out_count <= 0;
        end
    end
    // Of these, the commands whose beats are all in the register before W; the next one has the channel.
    wire [1:0] gone = (w_valid && wlast) + (w_spare && w_spare_last);
    wire [7:0] len_in = q_len >> 8 * gone;
    wire [3:0] client_in = q_client >> 4 * gone;
    wire [3:0] client_next = q_client >> 4 * (gone + 3'd1);
    always @* if (move) assume (ends_burst == (in_count == len_in));

    // Counts of any client, and of all.
    (* anyconst *) reg [3:0] c;
    always @* assume (c < N);
    reg [15:0] issued = 0, done = 0, all_owed = 0;
    always @(posedge clk) begin
        issued <= rst ? 0 : issued + takes[c];
        done <= rst ? 0 : done + (bvalid && bid == c);
        all_owed <= rst ? 0 : all_owed + (awvalid && awready) - bvalid;
    end
    always @* if (bvalid) assume (all_owed != 0);

    wire [15:0] its_issued = issues >> {c, 4'd0};
    wire [15:0] its_done = dones >> {c, 4'd0};
    wire [7:0] len_0 = q_len;
    wire [7:0] len_1 = q_len >> 8;
    always @* if (!rst) begin
        assert (bready && awsize == 3 && awburst == 1);
        assert ((takes & (takes - 1)) == 0 && (moves & (moves - 1)) == 0);
        if (move) assert (moves == 1 << client_in);
        if (wvalid) assert (wlast == (out_count == len_0));
        assert (its_issued == issued && its_done == done);
        assert (idle == (open == 0));
        assert (open == all_owed + level);
        // the register before AW
        assert (out_valid || !spare_valid);
        assert (level == out_valid + spare_valid);
        if (watching && ahead == 0) assert ({awid, awaddr, awlen} == item);
        if (watching && ahead == 1) assert ({spare[76:73], spare[63:0], spare[71:64]} == item);
        // whose beats are next
        assert (owned || !owned_next);
        assert (q == gone + owned + owned_next);
        if (owned) assert (owner == 1 << client_in);
        if (owned_next) assert (owner_next == 1 << client_next);
        // the register before W
        assert (w_valid || !w_spare);
        assert (data_valid == w_valid && data_spare == w_spare && strb_valid == w_valid && strb_spare == w_spare);
        if (w_spare) assert (w_spare_last == (wlast ? len_1 == 0 : out_count + 1 == len_0));
        if (gone == 0) assert (in_count == out_count + w_valid + w_spare);
        else assert (in_count == (w_spare && !w_spare_last));
        assert (out_count <= len_0 || q == 0 && out_count == 0);
        if (owned) assert (in_count <= len_in);
        else assert (in_count == 0);
        cover (out && wlast && out_count == 3 && awvalid);
        cover (its_done == 2);
    end
endmodule
