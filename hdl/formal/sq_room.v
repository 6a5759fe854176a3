// Says: A message is new if none is at or after the one being executed. A new message has room only if the outstanding
// ring has a free entry, and one that sends nothing only if the ring is empty. Nothing runs while one is executed. The block
// computes what is left in the ring after a report of `retire`, and whether the
// report is of this incarnation of the queue pair.
// Assumes: The ring holds no more messages than it has entries (proof `sq_ring`).
module check_sq_room (
    input clk,
    input [15:0] retired, // = sq_event.count
    input [1:0] generation, // = sq_event.generation
    input [3:0] ot_log, // = image.ot_log
    input [15:0] used, // = state.used
    input [15:0] msgs_to_resend, // = state.msgs_to_resend
    input [1:0] incarnation, // = state.incarnation
    input executing, // = state.executing
    input running, // = terms.running
    input differs, // = terms.differs
    input is_local, // = terms.is_local
    input fresh, // = terms.fresh
    input room, // = terms.room
    input [15:0] used_after, // = terms.used_after
    input current // = terms.current
);
    wire [16:0] size = 17'd1 << ot_log;
    always @* assume (used <= size);
    reg seen = 0, is_new, has_room, is_empty, executes, is_current;
    reg [15:0] left;
    always @(posedge clk) begin
        seen <= 1;
        is_new <= msgs_to_resend == 0;
        has_room <= used < size;
        is_empty <= used == 0;
        executes <= executing;
        is_current <= generation == incarnation;
        left <= used - retired;
    end
    always @* if (seen) begin
        assert (fresh == is_new);
        assert (!room || !fresh || has_room);
        assert (!room || !is_local || differs || is_empty);
        assert (!running || !executes);
        assert (used_after == left);
        assert (current == is_current);
        cover (room && fresh);
        cover (room && is_local);
    end
endmodule
