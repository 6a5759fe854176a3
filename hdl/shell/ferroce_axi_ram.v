// Memory on the chip for boards without a host: AXI4 slave of 64 bits for the engine, words of 32 bits for whoever plays the host.
//
// 2^`LOG_BYTES` bytes. Addresses beyond it are answered with SLVERR and touch nothing. One read and one write burst at a time, a beat
// a cycle; INCR bursts of full width, which may begin at any byte. The word port waits for a cycle that the bursts leave free.
module ferroce_axi_ram #(
    parameter LOG_BYTES = 14
) (
    input  wire        clk,
    input  wire        rst,

    input  wire [3:0]  s_axi_awid,
    input  wire [63:0] s_axi_awaddr,
    input  wire        s_axi_awvalid,
    output wire        s_axi_awready,
    input  wire [63:0] s_axi_wdata,
    input  wire [7:0]  s_axi_wstrb,
    input  wire        s_axi_wlast,
    input  wire        s_axi_wvalid,
    output wire        s_axi_wready,
    output reg  [3:0]  s_axi_bid,
    output reg  [1:0]  s_axi_bresp,
    output reg         s_axi_bvalid,
    input  wire        s_axi_bready,
    input  wire [3:0]  s_axi_arid,
    input  wire [63:0] s_axi_araddr,
    input  wire [7:0]  s_axi_arlen,
    input  wire        s_axi_arvalid,
    output wire        s_axi_arready,
    output reg  [3:0]  s_axi_rid,
    output wire [63:0] s_axi_rdata,
    output reg  [1:0]  s_axi_rresp,
    output reg         s_axi_rlast,
    output reg         s_axi_rvalid,
    input  wire        s_axi_rready,

    // A word: `word_go` is held until `word_done`, a cycle; `word_out` is valid with it.
    input  wire [LOG_BYTES-1:2] word_addr,
    input  wire        word_write,
    input  wire [31:0] word_in,
    input  wire        word_go,
    output wire        word_done,
    output wire [31:0] word_out
);
    localparam A = LOG_BYTES - 3;

    // A write burst: where its next beat goes.
    reg         w_busy;
    reg         w_bad;
    reg [A-1:0] w_at;
    wire        w_take = w_busy & s_axi_wvalid;

    assign s_axi_awready = ~w_busy & (~s_axi_bvalid | s_axi_bready) & ~rst;
    assign s_axi_wready  = w_busy;

    // A read burst: where its next beat comes from.
    reg         r_busy;
    reg         r_bad;
    reg [A-1:0] r_at;
    reg [7:0]   r_left;
    reg [3:0]   r_id;
    wire        r_take = r_busy & (~s_axi_rvalid | s_axi_rready);

    assign s_axi_arready = ~r_busy & ~rst;

    // The word port; a read has its word a cycle later.
    reg         word_read;
    reg         word_half;
    wire        word_w = word_go & word_write & ~w_take;
    wire        word_r = word_go & ~word_write & ~r_busy & ~s_axi_rvalid & ~word_read;

    assign word_done = word_w | word_read;
    assign word_out  = word_half ? s_axi_rdata[63:32] : s_axi_rdata[31:0];

    wire [A-1:0] wr_at   = w_take ? w_at : word_addr[LOG_BYTES-1:3];
    wire [63:0]  wr_data = w_take ? s_axi_wdata : {word_in, word_in};
    wire [7:0]   wr_strb = w_take ? s_axi_wstrb & {8{~w_bad}} : {{4{word_addr[2]}}, {4{~word_addr[2]}}} & {8{word_w}};
    wire [A-1:0] rd_at   = r_busy ? r_at : word_addr[LOG_BYTES-1:3];
    wire         rd_go   = r_take | word_r;

    genvar i;
    generate
        for (i = 0; i < 8; i = i + 1) begin : bytes
            reg [7:0] mem [0:(1<<A)-1];
            reg [7:0] out;
            always @(posedge clk) begin
                if (wr_strb[i]) mem[wr_at] <= wr_data[8*i+7:8*i];
                if (rd_go) out <= mem[rd_at];
            end
            assign s_axi_rdata[8*i+7:8*i] = out;
        end
    endgenerate

    always @(posedge clk) begin
        if (s_axi_awvalid & s_axi_awready) begin
            s_axi_bid <= s_axi_awid;
            w_at      <= s_axi_awaddr[LOG_BYTES-1:3];
            w_bad     <= |s_axi_awaddr[63:LOG_BYTES];
        end else if (w_take) begin
            w_at <= w_at + 1'b1;
        end
        if (w_take & s_axi_wlast) s_axi_bresp <= {w_bad, 1'b0};

        if (s_axi_arvalid & s_axi_arready) begin
            r_id   <= s_axi_arid;
            r_at   <= s_axi_araddr[LOG_BYTES-1:3];
            r_left <= s_axi_arlen;
            r_bad  <= |s_axi_araddr[63:LOG_BYTES];
        end else if (r_take) begin
            r_at   <= r_at + 1'b1;
            r_left <= r_left - 8'd1;
        end
        if (r_take) begin
            s_axi_rid   <= r_id;
            s_axi_rresp <= {r_bad, 1'b0};
            s_axi_rlast <= r_left == 8'd0;
        end
        if (word_r) word_half <= word_addr[2];

        if (rst) begin
            w_busy       <= 1'b0;
            s_axi_bvalid <= 1'b0;
            r_busy       <= 1'b0;
            s_axi_rvalid <= 1'b0;
            word_read    <= 1'b0;
        end else begin
            w_busy       <= (s_axi_awvalid & s_axi_awready) | (w_busy & ~(w_take & s_axi_wlast));
            s_axi_bvalid <= (w_take & s_axi_wlast) | (s_axi_bvalid & ~s_axi_bready);
            r_busy       <= (s_axi_arvalid & s_axi_arready) | (r_busy & ~(r_take & r_left == 8'd0));
            s_axi_rvalid <= r_take | (s_axi_rvalid & ~s_axi_rready);
            word_read    <= word_r;
        end
    end

    wire unused = &{1'b0, s_axi_awaddr[2:0], s_axi_araddr[2:0]};
endmodule
