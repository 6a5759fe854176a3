// Says: A bit of `pause_send` stays for at least 16 cycles. It is set only for a priority that sends pauses, if its
// class asks and is in no storm. A storm is over when its class asks no more. A class that sends pauses is never
// refused, and no class is refused while none sends pauses.
// Assumes: nothing.
module check_pause_out (
    input clk,
    input rst,
    input [7:0] pause_send,
    input [3:0] refuse,
    input [7:0] sends, // = setup.sends
    input [31:0] prio_class, // = setup.prio_class
    input [31:0] stays, // = each(8, stays_#_q)
    input [7:0] wanted, // = wanted_q
    input [3:0] lossless, // = lossless_q
    input [3:0] asks, // = asks_q
    input [3:0] stopped // = stopped_q
);
    formal_reset reset (.clk(clk), .rst(rst));
    (* anyconst *) reg [2:0] who;
    wire is = pause_send >> who;
    wire [3:0] left = stays >> (4 * who);
    wire [1:0] class_of = prio_class >> (4 * who);
    // cycles for which the bit has stayed, 16 and more are one
    reg was = 0;
    reg [4:0] stayed = 16;
    // what was so in the cycle before, and in the one before that
    reg settled = 0, wants = 0, wanted_before = 0;
    reg [3:0] lossless_before = 0, stood = 0;
    wire changes = is != was;
    always @(posedge clk) begin
        settled <= !rst;
        was <= rst ? 1'b0 : is;
        stayed <= rst ? 5'd16 : changes ? 5'd1 : stayed == 16 ? 5'd16 : stayed + 5'd1;
        wants <= !rst && sends[who] && asks[class_of] && !stopped[class_of];
        wanted_before <= !rst && wanted[who];
        lossless_before <= rst ? 4'd0 : lossless;
        stood <= rst ? 4'd0 : ~asks;
    end
    always @* if (!rst) begin
        // a level stays
        if (changes) assert (stayed == 16);
        if (changes) assert (left == 15);
        else if (stayed != 16) assert (left == 15 - stayed);
        else assert (left == 0);
        // who asks
        if (changes && is) assert (wanted_before);
        if (settled) assert (wanted[who] == wants);
        // who is refused
        assert ((refuse & lossless_before) == 0);
        if (lossless_before == 0) assert (refuse == 0);
        // a storm
        assert ((stopped & stood) == 0);
        cover (changes && !is);
        cover (refuse != 0);
    end
endmodule
