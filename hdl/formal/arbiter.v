// Says: If there are requests, exactly one of them is granted. A request that stays is granted within 9 takes.
// Assumes: nothing.
module check_arbiter #(
    parameter N = 9
) (
    input clk,
    input rst,
    input [N-1:0] request,
    input take,
    input [N-1:0] grant,
    input [N-1:0] mask_after_last // = mask_after_last_q
);
    (* anyconst *) reg [3:0] who;
    always @* assume (who < N);
    formal_reset reset (.clk(clk), .rst(rst));
    // Takes by others while `who` asks.
    reg [3:0] passed;
    always @(posedge clk)
        if (rst || !request[who]) passed <= 0;
        else if (take) passed <= grant[who] ? 0 : passed + 1;
    // Whose turn is first, and how many may come before `who`.
    reg [3:0] turn;
    integer i;
    always @* begin
        turn = 0;
        for (i = 0; i < N; i = i + 1) if (mask_after_last != 0 && !mask_after_last[i]) turn = turn + 1;
    end
    wire [4:0] distance = who >= turn ? who - turn : who + N - turn;
    wire [N-1:0] below = ~mask_after_last;
    always @* if (!rst) begin
        assert ((grant & (grant - 1)) == 0);
        assert ((grant & ~request) == 0);
        assert ((grant == 0) == (request == 0));
        assert (passed < N);
        // `mask_after_last` is ones above the last grant, and each take brings `who` nearer
        assert ((below & (below + 1)) == 0 && below != 0 || mask_after_last == 0);
        assert (passed + distance < N);
        cover (passed == N - 1 && take && grant[who]);
    end
endmodule
