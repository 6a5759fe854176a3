// Reset of a PHY: low from the moment `arst` is high, and for 2^`LOG_CYCLES` cycles behind it.
module ferroce_phy_reset #(
    parameter LOG_CYCLES = 21
) (
    input  wire clk,
    input  wire arst,
    output reg  phy_rst_n
);
    reg [LOG_CYCLES:0] count;

    always @(posedge clk or posedge arst) begin
        if (arst) begin
            count     <= 0;
            phy_rst_n <= 1'b0;
        end else begin
            if (~count[LOG_CYCLES]) count <= count + 1;
            phy_rst_n <= count[LOG_CYCLES];
        end
    end
endmodule
