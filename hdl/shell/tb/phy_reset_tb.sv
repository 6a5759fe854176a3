// phy_reset as on the ECP5-5G Versa, at 125 MHz. Prints PASS or stops with an error.
//
// Checked: low at once in a reset, for 10 ms at least behind it, then high for ever.
`timescale 1ns / 1ps

module phy_reset_tb;
    bit  clk, arst;
    wire phy_rst_n;
    always #4 clk = !clk;
    ferroce_phy_reset #(.LOG_CYCLES(21)) dut (.*);

    task automatic fail(string what);
        $display("FAIL at %0t: %s", $time, what);
        $fatal(1);
    endtask

    initial begin
        repeat (2) begin
            automatic time from;
            #1 arst = 1;
            #1 if (phy_rst_n) fail("no reset");
            #100 arst = 0;
            from = $time;
            wait (phy_rst_n);
            if ($time - from < 10_000_000 || $time - from > 20_000_000) fail($sformatf("%0d ns", $time - from));
            repeat (3_000_000) begin
                @(negedge clk);
                if (!phy_rst_n) fail("it ends");
            end
        end
        $display("PASS");
        $finish;
    end
endmodule
