// msix_qdma with a QDMA that masks vectors: `+seed=N`. Prints PASS or stops with an error.
//
// Checked: a request stands until it is sent or refused, then there is none for a cycle; every interrupt of a vector that is not
// masked, or is unmasked later, is sent; one that is masked delays no other; what is refused at once is told once.
`timescale 1ns / 1ps

module msix_tb;
    int unsigned seed = 1;
    bit clk, rst;
    always #2 clk = !clk;

    bit [10:0]  irq_vector;
    bit         irq_valid;
    wire        irq_ready;
    wire        usr_irq_in_vld;
    wire [10:0] usr_irq_in_vec;
    wire [7:0]  usr_irq_in_fnc;
    bit         usr_irq_out_ack, usr_irq_out_fail;
    wire        refused;
    ferroce_msix_qdma dut (.*);

    task automatic fail(string what);
        $display("FAIL at %0t: %s", $time, what);
        $fatal(1);
    endtask

    // The QDMA: an answer after some cycles, by the mask of that time.
    bit [31:0]   masked;
    bit          stood, answered;
    bit [10:0]   vector;
    int unsigned wait_for, asked, sent[32];
    always @(posedge clk) begin
        usr_irq_out_ack  <= 0;
        usr_irq_out_fail <= 0;
        if (rst) begin
            stood = 0;
            answered = 0;
        end else if (answered) begin
            // the answer is seen in this cycle
            answered = 0;
            stood = 0;
        end else if (usr_irq_in_vld) begin
            if (stood && usr_irq_in_vec != vector) fail("another vector in the middle of a request");
            if (!stood) begin
                asked++;
                wait_for = $urandom_range(0, 9);
            end
            stood = 1;
            vector = usr_irq_in_vec;
            if (wait_for == 0) begin
                answered = 1;
                if (vector >= 32 || masked[vector[4:0]]) usr_irq_out_fail <= 1;
                else begin
                    usr_irq_out_ack <= 1;
                    sent[vector[4:0]]++;
                end
            end
            wait_for--;
        end else if (stood) fail("a request is withdrawn");
    end

    // No request directly behind an answer.
    bit was_answered;
    always @(posedge clk) begin
        if (was_answered && usr_irq_in_vld) fail("no cycle between two requests");
        was_answered = usr_irq_out_ack || usr_irq_out_fail;
    end

    // The engine.
    int unsigned told;
    always @(posedge clk) if (refused) told++;

    task automatic raise(bit [10:0] which);
        automatic int unsigned cycles = 0;
        irq_vector = which;
        irq_valid = 1;
        @(negedge clk);
        while (!was_ready) begin
            @(negedge clk);
            cycles++;
            // one that is refused and one that is asked for again stand before it
            if (cycles > 40) fail("an interrupt waits for others");
        end
        irq_valid = 0;
    endtask
    bit was_ready;
    always @(posedge clk) was_ready = irq_ready && irq_valid;

    initial begin
        automatic int unsigned already;
        void'($value$plusargs("seed=%d", seed));
        void'($urandom(seed));
        rst = 1;
        repeat (4) @(negedge clk);
        rst = 0;

        // All are masked: each is told once, and one is asked for again every 1024 cycles.
        masked = '1;
        for (int i = 0; i < 32; i++) raise(11'(i));
        repeat (20) @(negedge clk);
        if (told != 32) fail($sformatf("%0d of 32 refused", told));
        already = asked;
        repeat (32 * 1024) @(negedge clk);
        if (asked - already < 31 || asked - already > 33) fail($sformatf("%0d asked for again", asked - already));
        if (told != 32) fail("what is asked for again is told");

        // One that is unmasked comes in its turn, once.
        for (int i = 0; i < 32; i++) begin
            masked[i] = 0;
            repeat (33 * 1024) @(negedge clk);
            if (sent[i] != 1) fail($sformatf("vector %0d is sent %0d times", i, sent[i]));
        end
        already = asked;
        repeat (4096) @(negedge clk);
        if (asked != already) fail("nothing is pending, and it is asked for");

        // One of no table is refused and forgotten.
        raise(11'd37);
        repeat (4096) @(negedge clk);
        if (asked != already + 1 || told != 33) fail("a vector beyond the table");

        // Masks and interrupts at random; what was raised last is sent in the end.
        for (int round = 0; round < 20; round++) begin
            automatic int unsigned after[int];
            for (int i = 0; i < 200; i++) begin
                automatic bit [10:0] which = 11'($urandom_range(0, 31));
                if ($urandom_range(0, 3) == 0) masked = $urandom & $urandom;
                raise(which);
                after[int'(which)] = sent[which[4:0]];
                repeat ($urandom_range(0, 40)) @(negedge clk);
            end
            masked = 0;
            repeat (34 * 1024) @(negedge clk);
            foreach (after[i]) if (sent[i] == after[i]) fail($sformatf("vector %0d is lost", i));
        end
        $display("PASS asked %0d times", asked);
        $finish;
    end
endmodule
