// Says: Let e be the expected PSN of a reliable queue pair. A packet with PSN e is neither duplicate nor gap. One of e
// - 1 ... e - 2^23 is a duplicate, one of e + 1 ... e + 2^23 - 1 a gap (all modulo 2^24). Neither of these is accepted
// (IB1 9.7.1, 9.7.4.1.2).
// Assumes: The packet is for a queue pair that receives, and passed its static checks.
module check_psn_receive (
    input packet,
    input unreliable, // = request.unreliable
    input [23:0] psn, // = request.psn
    input good, // = notes.good
    input [23:0] expected, // = state.psn
    input usable, // = outcome.usable
    input accepted, // = outcome.accepted
    input duplicate, // = outcome.duplicate
    input gap // = outcome.gap
);
    (* anyconst *) reg [23:0] k;
    wire [23:0] past = expected - k;
    wire [23:0] future = expected + k;
    always @* assume (packet && good && usable && !unreliable);
    always @* begin
        if (k >= 1 && k <= 24'h800000 && psn == past) assert (duplicate && !gap && !accepted);
        if (k >= 1 && k < 24'h800000 && psn == future) assert (gap && !duplicate && !accepted);
        if (psn == expected) assert (!gap && !duplicate);
        cover (duplicate && psn > expected);
        cover (gap && psn < expected);
        cover (accepted);
    end
endmodule
