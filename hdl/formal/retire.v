// Says: The block walks the outstanding ring of a queue pair from the oldest message on. It takes off exactly the
// leading messages that are acknowledged (their last PSN is one of una - 2^23 ... una - 1 modulo 2^24), in error all
// of them. Each message leaves once, in order, and none that is not in the ring. Exactly the messages that asked for a
// CQE or failed give a completion, with the index of their WQE. Only entries of this ring are read. The report has the
// number of messages that left, and of READs and atomics among them. A last entry reports that the failure of a queue
// pair is complete, if that is asked for.
// Assumes: A ring begins at a multiple of its size, which is at most the pool's (8 here), and holds no more messages
// than it has entries. No message in the ring is written while it is walked (proof `sq_ring`). The state of the queue
// pair comes after it was asked for.
module check_retire (
    input clk,
    input rst,
    input grant_valid,
    input [15:0] head, // = head of g_q as grant
    input [15:0] used, // = used of g_q as grant
    input [15:0] head_index, // = head_index of g_q as grant
    input [23:0] una, // = una_psn of g_q as grant
    input error, // = error of g_q as grant
    input fatal, // = fatal of g_q as grant
    input [23:0] ot_base, // = ot_base of g_q as grant
    input [3:0] ot_log, // = ot_log of g_q as grant
    input entry_valid,
    input [23:0] entry_addr,
    output [2:0] slot,
    input [23:0] last_psn, // = last_psn of u_pool.mem[slot] as entry
    input [2:0] slots, // = slots of u_pool.mem[slot] as entry
    input signaled, // = signaled of u_pool.mem[slot] as entry
    input answered, // = answered of u_pool.mem[slot] as entry
    input bad, // = bad of u_pool.mem[slot] as entry
    input completes, // = done_valid
    input completed, // = done_ready
    input tells, // = failed of done_payload as done_payload
    input [15:0] wqe_index, // = wqe_index of done_payload as done_payload
    input [7:0] status, // = status of done_payload as done_payload
    input reports, // = out_s_valid
    input [15:0] reported, // = out_s_payload[104:89]
    input [4:0] reported_reads, // = out_s_payload[85:81]
    input [2:0] state, // = state_q
    input advance,
    input takes,
    input [15:0] place, // = place_q
    input [15:0] ring,
    input [15:0] count, // = count_q
    input [15:0] index, // = index_q
    input [4:0] reads, // = reads_q
    input flush, // = flush_q
    input [7:0] local_status, // = local_status_q
    input [69:0] o, // = o_q
    input its_acked, // = acked_q
    input [69:0] following, // = pool_rdata
    input [69:0] word, // = u_pool.mem[slot]
    output [2:0] after,
    input [69:0] word_after // = u_pool.mem[after]
);
    localparam ASK = 1, SEEK = 2, READ = 3, WALK = 4, TELL = 5, REPORT = 6;
    formal_reset reset (.clk(clk), .rst(rst));
    wire [15:0] size = 16'd1 << ot_log;
    wire [15:0] oldest = head + count;
    assign slot = ot_base[2:0] | (oldest[2:0] & (size[2:0] - 3'd1));
    assign after = ot_base[2:0] | ((oldest[2:0] + 3'd1) & (size[2:0] - 3'd1));
    // The ring, and what is written into the pool meanwhile.
    wire [15:0] depth = (entry_addr[15:0] - head) & (size - 1);
    wire in_ring = (entry_addr[2:0] & ~(size[2:0] - 3'd1)) == ot_base[2:0];
    always @* begin
        if (state >= SEEK) begin
            assume (ot_log <= 3 && used <= size && ot_base < 8 && (ot_base & (size - 1)) == 0);
            if (entry_valid) assume (!in_ring || depth >= used);
        end
        if (grant_valid) assume (state == ASK);
    end
    // What was taken off in this walk.
    reg [15:0] taken, slots_taken;
    reg [4:0] reads_taken;
    reg failed;
    // All of these were acknowledged.
    reg so_far;
    always @(posedge clk)
        if (state == SEEK) begin
            taken <= 0;
            slots_taken <= 0;
            reads_taken <= 0;
            failed <= 0;
            so_far <= 1;
        end else if (state == WALK && advance) begin
            taken <= taken + 1;
            slots_taken <= slots_taken + slots;
            reads_taken <= reads_taken + answered;
            failed <= failed || bad;
            so_far <= acked;
        end
    wire [23:0] una_distance = una - last_psn;
    wire acked = so_far && una_distance >= 1 && una_distance <= 24'h800000;
    wire leaves = count < used && (acked || error || failed);
    always @* if (!rst) begin
        if (advance) assert (state == WALK && leaves);
        if (state == WALK) begin
            assert (takes == leaves);
            assert (completes == (leaves && (signaled || status != 0)));
            if (leaves) assert (advance == (completed || !completes));
            if (completes) assert (wqe_index == head_index + slots_taken);
            if (leaves && acked && !bad && !failed) assert (status == 0);
            if (leaves && !acked && !bad) assert (status != 0);
        end else assert (completes == (state == TELL));
        if (completes) assert (tells == (state == TELL));
        if (state == TELL) assert (fatal);
        if (state == REPORT && reports) assert (reported == taken && reported_reads == reads_taken);
        // registers
        assert (state <= REPORT);
        if (state >= READ) begin
            assert (ring == size - 1 && place == oldest + (state == READ ? 16'd1 : 16'd2));
            assert (count == taken && count <= used);
            assert (index == head_index + slots_taken && reads == reads_taken && flush == (error || failed));
            assert (failed || local_status == 0);
        end
        // the entry under the walk, and the one read ahead
        if (state == READ && used != 0) assert (following == word);
        if (state == WALK && count < used) assert (o == word && its_acked == acked);
        if (state == WALK && count + 1 < used) assert (following == word_after);
        cover (state == REPORT && reports && taken == 3 && reads_taken == 1 && used == 4 && !error);
        cover (state == WALK && advance && failed);
    end
endmodule
