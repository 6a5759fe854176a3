// Interrupts of the engine as requests to the QDMA: one MSI-X vector a handshake.
//
// The QDMA wants a request held until it is sent or refused, and idle between two. `refused` is high for a cycle when it
// could not be sent (vector masked for good, function not enabled).
module ferroce_msix_qdma (
    input  wire        clk,
    input  wire        rst,
    input  wire [10:0] irq_vector,
    input  wire        irq_valid,
    output wire        irq_ready,

    output reg         usr_irq_in_vld,
    output reg  [10:0] usr_irq_in_vec,
    output wire [7:0]  usr_irq_in_fnc,
    input  wire        usr_irq_out_ack,
    input  wire        usr_irq_out_fail,
    output reg         refused
);
    // A cycle between two requests.
    reg  gap;
    wire done = usr_irq_in_vld & (usr_irq_out_ack | usr_irq_out_fail);

    assign irq_ready      = ~usr_irq_in_vld & ~gap & ~rst;
    assign usr_irq_in_fnc = 8'd0;

    always @(posedge clk) begin
        if (irq_valid & irq_ready) usr_irq_in_vec <= irq_vector;
        if (rst) begin
            usr_irq_in_vld <= 1'b0;
            gap            <= 1'b0;
            refused        <= 1'b0;
        end else begin
            usr_irq_in_vld <= (irq_valid & irq_ready) | (usr_irq_in_vld & ~done);
            gap            <= done;
            refused        <= usr_irq_in_vld & usr_irq_out_fail;
        end
    end
endmodule
