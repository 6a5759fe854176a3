// Says: The outstanding ring of a send queue never holds more messages than it has entries, so no message overwrites
// another one. An entry is written, at ordinal `tail`, only when one is free, and only when a message starts or was executed
// in the card. These events alone move `tail`, and add one to the ring. A report of `retire` takes off the number it names,
// a reset everything. No other event changes what the ring holds. While a message is executed the ring is empty.
// Assumes: The terms are those that `sq_room` proves. `retire` reports no more than there was (proof `retire`). The
// log of the size does not change while the ring holds messages.
module check_sq_ring (
    input [3:0] kind, // = sq_event.kind
    input [15:0] retired, // = sq_event.count
    input reset, // = sq_event.reset
    input [3:0] ot_log, // = image.ot_log
    input [15:0] tail, // = state.tail
    input [15:0] used, // = state.used
    input executing, // = state.executing
    input running, // = terms.running
    input differs, // = terms.differs
    input is_local, // = terms.is_local
    input fresh, // = terms.fresh
    input room, // = terms.room
    input [15:0] used_after, // = terms.used_after
    input current, // = terms.current
    input write,
    input [15:0] next_tail, // = next_state.tail
    input [15:0] next_used, // = next_state.used
    input next_executing, // = next_state.executing
    input entry // = decision.entry
);
    localparam START = 3, RETIRED = 7, COMMAND = 8, EXECUTED = 12;
    wire [16:0] size = 17'd1 << ot_log;
    always @* begin
        assume (used <= size);
        assume (!room || !fresh || used < size);
        assume (!executing || used == 0 && !running);
        assume (!is_local || !room || differs || used == 0);
        assume (used_after == used - retired);
        if (kind == RETIRED && current) assume (retired <= used);
    end
    always @* begin
        if (entry) assert (write && (kind == START || kind == EXECUTED) && used < size);
        if (write) begin
            assert (next_used <= size);
            assert (next_tail == tail + entry);
            assert (!next_executing || next_used == 0);
            if (kind == RETIRED && current) assert (next_used == used - retired);
            else if (kind == COMMAND && reset) assert (next_used == 0);
            else assert (next_used == used + entry);
        end
        cover (entry && next_used == size);
        cover (entry && kind == EXECUTED);
        cover (write && kind == RETIRED && used == size && next_used == 0);
    end
endmodule
