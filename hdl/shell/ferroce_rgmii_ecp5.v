// RGMII by the I/O cells of the ECP5: a byte a cycle of 125 MHz, low nibble with the rising edge.
//
// RGMII wants each clock 2 ns behind its data, made by the sender, the receiver or the board, and by one of them alone. `clk_late`
// drives the clock that goes out; what comes in is delayed by `RX_TAPS` steps of 25 ps. On the Versa the PHY makes both delays.
module ferroce_rgmii_ecp5 #(
    parameter RX_TAPS = 0
) (
    input  wire       clk,
    input  wire       clk_late,
    input  wire [7:0] tx_d,
    input  wire       tx_en,
    output wire       pin_tx_clk,
    output wire [3:0] pin_tx_data,
    output wire       pin_tx_ctl,

    input  wire       pin_rx_clk,
    input  wire [3:0] pin_rx_data,
    input  wire       pin_rx_ctl,
    output wire       rx_clk,
    output reg  [7:0] rx_d,
    output reg        rx_dv,
    output reg        rx_er
);
    assign rx_clk = pin_rx_clk;

    ODDRX1F tx_clk_cell (.SCLK(clk_late), .RST(1'b0), .D0(1'b1), .D1(1'b0), .Q(pin_tx_clk));
    // No error is ever sent: both halves of the control line are the enable.
    ODDRX1F tx_ctl_cell (.SCLK(clk), .RST(1'b0), .D0(tx_en), .D1(tx_en), .Q(pin_tx_ctl));

    wire       ctl_late;
    wire       ctl_rise;
    wire       ctl_fall;
    wire [3:0] late;
    wire [7:0] data;

    DELAYG #(.DEL_MODE("USER_DEFINED"), .DEL_VALUE(RX_TAPS)) rx_ctl_delay (.A(pin_rx_ctl), .Z(ctl_late));
    IDDRX1F rx_ctl_cell (.SCLK(rx_clk), .RST(1'b0), .D(ctl_late), .Q0(ctl_rise), .Q1(ctl_fall));

    genvar i;
    generate
        for (i = 0; i < 4; i = i + 1) begin : bits
            ODDRX1F tx_cell (.SCLK(clk), .RST(1'b0), .D0(tx_d[i]), .D1(tx_d[i+4]), .Q(pin_tx_data[i]));
            DELAYG #(.DEL_MODE("USER_DEFINED"), .DEL_VALUE(RX_TAPS)) rx_delay (.A(pin_rx_data[i]), .Z(late[i]));
            IDDRX1F rx_cell (.SCLK(rx_clk), .RST(1'b0), .D(late[i]), .Q0(data[i]), .Q1(data[i+4]));
        end
    endgenerate

    always @(posedge rx_clk) begin
        rx_d  <= data;
        rx_dv <= ctl_rise;
        rx_er <= ctl_rise ^ ctl_fall;
    end
endmodule
