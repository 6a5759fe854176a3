// Says: After the sweep an entry is valid, or a window, only if a command wrote it since reset. All copies of the table are equal.
// What a command writes is there in the next cycle. An entry that a peer invalidates is invalid when the answer comes.
// It had the key and protection domain, and was a window of its queue pair only, or a region that may be invalidated.
// An entry that fits is always invalidated. What a request binds is a window of its protection domain, and none of a queue
// pair that is bound.
// Assumes: No command writes during the sweep, and nothing is asked for. An invalidation stands until its answer.
module check_mr_table (
    input clk,
    input rst,
    input write,
    input [15:0] index,
    input [216:0] entry,
    input ready,
    input asks, // = inv_valid
    input [31:0] key, // = inv_request.key
    input [23:0] pd, // = inv_request.pd
    input [15:0] qpn, // = inv_request.qpn
    input done, // = inv_done
    input ok, // = inv_ok
    input [1:0] sweep, // = sweep_q
    output [1:0] slot,
    input [216:0] one, // = u_copy.mem[slot]
    input [216:0] two, // = u_port_0.u_table.mem[slot]
    input there, // = valid of u_copy.mem[slot] as entry
    input [31:0] its_key, // = key of u_copy.mem[slot] as entry
    input [23:0] its_pd, // = pd of u_copy.mem[slot] as entry
    input window, // = window of u_copy.mem[slot] as entry
    input invalidate, // = invalidate of u_copy.mem[slot] as entry
    input qp_only, // = qp_only of u_copy.mem[slot] as entry
    input [23:0] its_qpn, // = qpn of u_copy.mem[slot] as entry
    input [2:0] step, // = step_q
    input change_valid,
    input due, // = inv_due_q
    input change_due, // = change_due_q
    input own, // = own_q
    input binds, // = binds_q
    input [31:0] key_held, // = key_q
    input [23:0] pd_held, // = pd_q
    input [15:0] qpn_held, // = qpn_q
    input again, // = touched_q
    input fits, // = entry_there_q
    input clear,
    input [216:0] looked // = u_copy.rdata
);
    formal_reset reset (.clk(clk), .rst(rst));
    (* anyconst *) reg [1:0] some;
    assign slot = some;
    wire here = write && index[1:0] == slot;
    always @* assume (ready || !write && !asks && !change_valid);
    // What was asked for last; whether the entry was written since reset, and since it was asked for.
    reg written = 0, waits = 0;
    reg [31:0] asked;
    reg [23:0] of;
    reg [15:0] by;
    reg was_clear, was_fit, was_here = 0;
    reg [216:0] was_entry;
    always @(posedge clk) begin
        if (here) written <= 1;
        if (asks) begin
            asked <= key;
            of <= pd;
            by <= qpn;
        end
        waits <= !rst && (asks || waits && !done);
        was_clear <= clear;
        was_here <= here && !rst;
        was_entry <= entry;
        was_fit <= fit;
        if (rst) written <= 0;
    end
    always @* if (waits) assume (!asks && key == asked && pd == of && qpn == by);
    wire named = asked[9:8] == slot;
    wire held = key_held[9:8] == slot;
    wire fit = there && its_key == asked && its_pd == of
        && (qp_only ? its_qpn == by : !window && invalidate);
    always @* if (!rst) begin
        if ((there || window) && (ready || sweep > slot)) assert (written);
        if (ready || sweep > slot) assert (one == two);
        if (was_here) assert (one == was_entry);
        if (clear && !own && named) assert (fit);
        if (clear && own && binds && held) assert (window && its_pd == pd_held && !(qp_only && there));
        if (done && ok) assert (was_clear && (!named || !there));
        if (done && !ok) assert (!was_clear && (!named || !was_fit));
        // registers
        if (!ready) assert (step == 0 && !done && !due && !change_due);
        assert (step < 6);
        if (step > 3) assert (own && binds);
        if (!own && step != 0) assert (!binds && !due);
        assert (waits == (due || step != 0 && !own || done));
        assert (!(done && (due || step != 0 && !own)));
        if (step != 0 && !own) assert (key_held == asked && pd_held == of && qpn_held == by);
        if (step[2:1] == 1 && !again && held) assert (looked == one);
        if (step == 3 && !again && !own && named) assert (fits == fit);
        if (step == 3 && !again && own && held && fits)
            assert (its_pd == pd_held && (binds ? window && !(qp_only && there) : there));
        cover (done && ok && named);
        cover (done && !ok && named && there);
        cover (clear && own && binds && held && qp_only);
    end
endmodule
