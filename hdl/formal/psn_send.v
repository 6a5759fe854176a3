// Says: A response is in the window exactly if its PSN is one of una ... una + inflight - 1 modulo 2^24 and has left
// in this incarnation. If the response shows a loss (implied NAK), the missing PSN must be in the window too (IB1
// 9.7.5.1.1). Of two acknowledgements taken as one either PSN may be, and `both` is 1 exactly if both are.
// The incarnation that a reset begins is neither the present one nor that of what is noted to have left.
// Assumes: nothing.
module check_psn_send (
    input clk,
    input [23:0] psn, // = sq_event.psn
    input [23:0] missing, // = sq_event.una_psn
    input implied, // = sq_event.implied
    input merged, // = sq_event.merged
    input [23:0] una, // = state.una_psn
    input [23:0] inflight, // = state.inflight
    input [1:0] incarnation, // = state.incarnation
    input sent, // = sq_event.sent
    input [1:0] generation, // = sq_event.generation
    input [1:0] departed, // = departed.incarnation
    input [23:0] furthest, // = departed.furthest
    input in_window, // = terms.in_window
    input both, // = terms.both
    input [1:0] next_incarnation // = terms.next_incarnation
);
    (* anyconst *) reg [23:0] k;
    (* anyconst *) reg [23:0] m;
    reg seen = 0, was_implied, was_merged, hit, miss, of_sent, is_ours;
    reg [23:0] window, reach;
    reg [1:0] present, noted;
    always @(posedge clk) begin
        seen <= 1;
        present <= incarnation;
        noted <= departed;
        window <= inflight;
        reach <= departed == incarnation ? furthest - una : 0;
        // what was sent says so itself
        of_sent <= sent;
        is_ours <= generation == incarnation;
        was_implied <= implied;
        was_merged <= merged;
        // k and m count from the oldest PSN to the two of the response
        hit <= psn == una + k;
        miss <= missing == una + m;
    end
    wire first = k < window && (of_sent ? is_ours : k < reach);
    wire second = m < window && m < reach;
    always @* begin
        if (seen && hit && (miss || !was_implied) && !was_merged)
            assert (in_window == (first && (!was_implied || second)));
        if (seen && hit && miss && was_merged)
            assert (in_window == (first || second));
        if (seen && hit && miss)
            assert (both == (first && second));
        if (seen)
            assert (next_incarnation != present && next_incarnation != noted);
        cover (seen && hit && miss && was_implied && in_window && k != 0 && m != 0);
        cover (seen && hit && miss && was_merged && in_window && !both);
        cover (seen && hit && !in_window);
        cover (seen && hit && k < window && !of_sent && !in_window);
        cover (seen && hit && of_sent && in_window);
    end
endmodule
