// Three lights: link, traffic, trouble.
//
// `link` is on while the link is up and blinks (3 Hz at 250 MHz) while it is not, so that a dark light is a dead card. `activity`
// flashes for 2^24 cycles (67 ms) at traffic, `fault` for as long at a dropped frame.
module ferroce_leds #(
    parameter LOG_FLASH = 24
) (
    input  wire clk,
    input  wire rst,
    input  wire up,
    input  wire traffic,
    input  wire trouble,
    output reg  link,
    output reg  activity,
    output reg  fault
);
    reg [LOG_FLASH+1:0] beat;
    reg [LOG_FLASH:0]   busy;
    reg [LOG_FLASH:0]   sick;

    always @(posedge clk) begin
        if (rst) begin
            beat     <= 0;
            busy     <= 0;
            sick     <= 0;
            link     <= 1'b0;
            activity <= 1'b0;
            fault    <= 1'b0;
        end else begin
            beat <= beat + 1'b1;
            // A flash is as long as the pause after it: lasting traffic blinks.
            if (traffic & busy == 0) busy <= {LOG_FLASH+1{1'b1}};
            else if (busy != 0)      busy <= busy - 1'b1;
            if (trouble & sick == 0) sick <= {LOG_FLASH+1{1'b1}};
            else if (sick != 0)      sick <= sick - 1'b1;
            link     <= up | beat[LOG_FLASH+1];
            activity <= busy[LOG_FLASH];
            fault    <= sick[LOG_FLASH];
        end
    end
endmodule
