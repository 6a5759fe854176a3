// Says: A queue that was paused in the cycle before starts no frame. The beats of a frame follow each other. A queue
// of control that may start does so before all others, and within 7 frames of control. Another strict queue that may
// start does so before all that are not strict, the highest number first. While a queue may start and a beat may leave,
// one leaves. No queue starves: a queue that waits and may start does so within 4 frames of queues that share. While all queues that could start are in debt, every queue gets its quantum in each cycle. No queue has
// more credit than its quantum, and no queue in debt starts.
// Assumes: Weights do not change. Queues of control are strict, and the highest. A queue that has a beat has it until it leaves. 1 to 88 bytes are charged, and no
// queue with a debt of 16,384 bytes is charged.
module check_class_turn (
    input clk,
    input rst,
    input [3:0] ready,
    input [3:0] last,
    input step,
    input [3:0] pause,
    input [27:0] weights, // = each(4, weight_#)
    input [3:0] control,
    input [3:0] charged,
    input [6:0] charge,
    input [3:0] pop,
    input [63:0] credits, // = each(4, u_account_#.credit_q)
    input [3:0] begun, // = begun_q
    input [3:0] may_strict, // = may_strict_q
    input [3:0] may_share, // = may_share_q
    input [3:0] strict, // = strict_q
    input [3:0] served, // = served_q
    input [3:0] able, // = able_q
    input refill,
    input [3:0] mask // = u_arbiter.mask_after_last_q
);
    formal_reset reset (.clk(clk), .rst(rst));
    (* anyconst *) reg [27:0] fixed;
    (* anyconst *) reg [1:0] who;
    // a queue of control, if there is one
    (* anyconst *) reg [3:0] of_control;
    (* anyconst *) reg [1:0] asks;
    wire [3:0] others = ~of_control;
    wire [3:0] zero = {fixed[27:21] == 0, fixed[20:14] == 0, fixed[13:7] == 0, fixed[6:0] == 0};
    wire [6:0] weight = fixed >> (7 * who);
    wire [15:0] credit = credits >> (16 * who);
    wire [15:0] quantum = {2'd0, weight, 7'd0};
    always @* begin
        assume (weights == fixed);
        assume (!zero[who]);
        assume (control == of_control && (control & ~zero) == 0);
        assume ((others & (others + 1)) == 0);
        assume (charge >= 1 && charge <= 88);
        if (credit[15:14] == 2'b10) assume (!charged[who]);
    end
    reg [3:0] had = 0, paused = 0;
    // a cycle, and two, behind the reset: `strict` follows the weights, who may start follows `strict`
    reg settled = 0, steady = 0, was_poor = 0, charging = 0;
    reg [6:0] charged_bytes;
    reg [15:0] before = 0;
    reg [2:0] passed = 0; // frames of others that share, while `who` may start
    reg [2:0] behind = 0; // frames of control, while `asks` may start
    wire [3:0] starts = pop & ~begun;
    always @(posedge clk) begin
        had <= rst ? 4'd0 : ready & ~pop;
        paused <= pause;
        settled <= !rst;
        steady <= settled;
        before <= credit;
        was_poor <= refill && credit[15];
        charging <= charged[who];
        charged_bytes <= charge;
        if (!steady || !ready[who] || !may_share[who] || pop[who]) passed <= 0;
        else if (|(starts & ~zero)) passed <= passed + 1;
        if (!steady || !ready[asks] || !may_strict[asks] || pop[asks]) behind <= 0;
        else if (|(starts & control)) behind <= behind + 1;
    end
    always @* assume ((had & ~ready) == 0);
    wire [3:0] first = ready & may_strict;
    wire [3:0] could = ready & able;
    wire [3:0] rich = {!credits[63], !credits[47], !credits[31], !credits[15]};
    // the credit without what was charged in the cycle before
    wire [15:0] charged_less = credit + (charging ? charged_bytes : 7'd0);
    wire [3:0] below = ~mask;
    reg [2:0] turn;
    integer i;
    always @* begin
        turn = 0;
        for (i = 0; i < 4; i = i + 1) if (mask != 0 && !mask[i]) turn = turn + 1;
    end
    // queues of control that have their turn before `asks`: those that had none yet, then all
    reg [3:0] before_it;
    always @* begin
        before_it = served[asks] ? 3 : 0;
        for (i = 0; i < 4; i = i + 1) if (i != asks && !served[i]) before_it = before_it + 1;
    end
    wire [2:0] distance = who >= turn ? who - turn : who + 4 - turn;
    always @* if (!rst) begin
        // what leaves
        assert ((pop & (pop - 1)) == 0 && (pop & ~ready) == 0 && (step || pop == 0));
        assert ((begun & (begun - 1)) == 0);
        if (begun != 0) assert ((pop & ~begun) == 0);
        if (steady && (starts & ~zero) != 0) assert (first == 0);
        if (steady && (starts & ~control) != 0) assert ((first & control) == 0);
        if (steady && (starts & zero & ~control) != 0) assert (starts > (first & ~starts));
        assert ((served & ~control) == 0);
        if (control[asks]) assert (behind + before_it <= 6);
        if (step && begun == 0 && (ready & (may_strict | may_share)) != 0) assert (pop != 0);
        if (step && (ready & begun) != 0) assert (pop != 0);
        // pause
        if (settled) assert (able == (~zero & ~paused));
        if (settled) assert ((starts & paused) == 0);
        if (settled) assert (((may_strict | may_share) & paused) == 0);
        // turns
        if (settled) assert (strict == zero);
        if (!settled) assert (may_share == 0 && may_strict == 0 && strict == 0 && begun == 0);
        assert ((may_strict & ~strict) == 0 && (settled || !steady && passed == 0));
        if (steady) assert ((may_share & strict) == 0);
        else assert (passed == 0 && may_strict == 0);
        assert (passed < 4);
        assert ((below & (below + 1)) == 0 && below != 0 || mask == 0);
        assert (passed + distance < 4 || !ready[who] || !may_share[who]);
        // accounts
        assert (refill == ((could & rich) == 0));
        assert (credit[15] || credit <= quantum);
        if (!settled) assert (credit == 0);
        if (may_share[who]) assert (!charged_less[15]);
        if (settled && was_poor) assert (charged_less == before + quantum);
        cover (passed == 3 && pop[who]);
        cover (control[asks] && behind == 4 && pop[asks]);
        cover (settled && was_poor && !credit[15]);
    end
endmodule
