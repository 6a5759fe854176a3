// Crossing cells between two unrelated clocks: `+seed=N +wr=PS +rd=PS` (periods in ps). Prints PASS or stops with an error.
//
// cdc_fifo: random items under random pauses on both sides come out once, in order; `s_high` leaves the room that it promises;
// resets in the middle of it, with a clock that stands still, leave a queue that is empty. cdc_count: exact. cdc_reset: asserts
// without a clock.
`timescale 1ps / 1ps
module cdc_tb;
    localparam WIDTH = 24;
    localparam LOG_DEPTH = 4;
    localparam MARGIN = 6;

    int unsigned wr_period = 3103;
    int unsigned rd_period = 4000;
    int unsigned seed = 1;

    bit wr_clk, rd_clk, wr_stop, arst;
    always begin
        #(wr_period / 2) if (!wr_stop) wr_clk = !wr_clk;
    end
    always #(rd_period / 2) rd_clk = !rd_clk;

    wire wr_rst, rd_rst;
    ferroce_cdc_reset wr_reset (.clk(wr_clk), .arst(arst), .rst(wr_rst));
    ferroce_cdc_reset rd_reset (.clk(rd_clk), .arst(arst), .rst(rd_rst));

    logic [WIDTH-1:0] s_data, m_data;
    logic s_valid, s_ready, s_high, s_part, m_valid, m_ready;
    ferroce_cdc_fifo #(.WIDTH(WIDTH), .LOG_DEPTH(LOG_DEPTH), .MARGIN(MARGIN)) fifo (.*);

    bit event_in;
    wire [31:0] count;
    ferroce_cdc_count #(.WIDTH(32)) counter (
        .src_clk(wr_clk), .src_rst(wr_rst), .event_in(event_in), .dst_clk(rd_clk), .dst_rst(rd_rst), .count(count)
    );

    // What is under way: written and not yet read.
    logic [WIDTH-1:0] queue[$];
    int unsigned written, read, events, most, writes_while_high;
    // How willing the sides are, of 8.
    int unsigned push = 4, pull = 4;
    // A writer that looks at s_high alone.
    bit blind;

    task automatic fail(string what);
        $display("FAIL at %0t: %s", $time, what);
        $fatal(1);
    endtask

    always @(posedge wr_clk) begin
        if (wr_rst) begin
            s_valid <= 0;
            writes_while_high = 0;
        end else begin
            if (s_valid && s_ready) begin
                queue.push_back(s_data);
                written++;
            end
            if (s_valid && !s_ready && blind) fail("full in spite of s_high");
            if (blind ? 1'b1 : !s_valid || s_ready) begin
                // Blind, it ends what it began: two items more when s_high is seen.
                writes_while_high = s_high ? writes_while_high + 1 : 0;
                s_valid <= blind ? !s_high || writes_while_high <= 2 : ($urandom & 7) < push;
                s_data  <= WIDTH'($urandom);
            end
        end
        event_in <= !wr_rst && ($urandom & 7) < push;
        if (wr_rst) events = 0;
        else if (event_in) events++;
    end

    always @(posedge rd_clk) begin
        if (!rd_rst && m_valid && m_ready) begin
            if (queue.size() == 0) fail("an item that was not written");
            else begin
                automatic logic [WIDTH-1:0] want = queue.pop_front();
                if (m_data !== want) fail($sformatf("item %0d is %h, expected %h", read, m_data, want));
            end
            read++;
        end
        if (queue.size() > most) most = queue.size();
        m_ready <= ($urandom & 7) < pull;
    end

    // `s_part` is late: a queue that stands still shows it, but for an item in the register of the other side.
    int unsigned still, moved;
    always @(posedge wr_clk) begin
        still = wr_rst || written + read != moved ? 0 : still + 1;
        moved = written + read;
        if (still > 24 && (queue.size() > 9 && !s_part || queue.size() < 8 && s_part)) fail("s_part");
    end

    task automatic reset(bit stop);
        arst = 1;
        wr_stop = stop;
        #1 if (!wr_rst || !rd_rst) fail("a reset waits for its clock");
        #(10 * (wr_period + rd_period));
        queue.delete();
        arst = 0;
        #(5 * rd_period) wr_stop = 0;
    endtask

    task automatic run(int unsigned p, int unsigned q, bit b, int unsigned cycles);
        push = p;
        pull = q;
        blind = b;
        #(cycles * (wr_period > rd_period ? wr_period : rd_period));
    endtask

    initial begin
        void'($value$plusargs("seed=%d", seed));
        void'($value$plusargs("wr=%d", wr_period));
        void'($value$plusargs("rd=%d", rd_period));
        void'($urandom(seed));
        reset(0);
        for (int i = 0; i < 40; i++) begin
            run($urandom_range(1, 8), $urandom_range(1, 8), 0, 400);
            run(8, 0, 0, 100);
            run(0, 8, 0, 100);
            run(8, $urandom_range(0, 8), 1, 400);
            run(0, 8, 0, 100);
            if (queue.size() != 0 || m_valid) fail($sformatf("%0d items stay behind", queue.size()));
            if (count != events) fail($sformatf("count %0d, events %0d", count, events));
            if (i % 4 == 3) begin
                run(8, 1, 0, 50);
                reset(i[2]);
            end
        end
        if (read < 5000 || most < 16) fail($sformatf("too little happened: %0d items, %0d at once", read, most));
        $display("PASS %0d items, %0d at once", read, most);
        $finish;
    end
endmodule
