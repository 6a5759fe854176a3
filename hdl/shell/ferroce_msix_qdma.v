// Interrupts of the engine as requests to the QDMA: one MSI-X vector a handshake.
//
// The QDMA wants a request held until it is sent or refused, and idle between two. By PG302 of 2023-10 it refuses a vector that is
// masked, and does not come back to it: such a vector is pending here. By that of 2024-12 it takes one that is masked and keeps it
// pending itself, and refuses while MSI-X is off. Every 2^`LOG_RETRY` cycles (4 us) one of those that are pending is asked for again,
// in turns, so one that is unmasked comes within 33 times that. One that is sent is pending no more.
//
// `refused` is high for a cycle for each interrupt of the engine that could not be sent at once. Vectors beyond the table, 32, are
// not asked for again.
module ferroce_msix_qdma #(
    parameter LOG_RETRY = 10
) (
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
    reg                 gap;
    reg [31:0]          pending;
    // The vector whose turn it is, which is looked at when the time has come; the request is such a one.
    reg [4:0]           turn;
    reg [LOG_RETRY-1:0] count;
    reg                 due;
    reg                 again;

    wire       done   = usr_irq_in_vld & (usr_irq_out_ack | usr_irq_out_fail);
    wire       idle   = ~usr_irq_in_vld & ~gap & ~rst;
    wire       retry  = due & pending[turn];
    wire [4:0] vector = usr_irq_in_vec[4:0];

    assign irq_ready      = idle & ~retry;
    assign usr_irq_in_fnc = 8'd0;

    always @(posedge clk) begin
        if (idle) begin
            usr_irq_in_vec <= retry ? {6'd0, turn} : irq_vector;
            again          <= retry;
        end
        if (rst) begin
            usr_irq_in_vld <= 1'b0;
            gap            <= 1'b0;
            refused        <= 1'b0;
            pending        <= 32'd0;
            turn           <= 5'd0;
            count          <= 0;
            due            <= 1'b0;
        end else begin
            usr_irq_in_vld <= (idle & (irq_valid | retry)) | (usr_irq_in_vld & ~done);
            gap            <= done;
            refused        <= done & usr_irq_out_fail & ~again;
            if (done & usr_irq_in_vec < 11'd32) pending[vector] <= usr_irq_out_fail;
            count          <= count + 1;
            due            <= (&count | due) & |pending & ~(idle & retry);
            if (due & (idle | ~retry)) turn <= turn + 5'd1;
        end
    end
endmodule
