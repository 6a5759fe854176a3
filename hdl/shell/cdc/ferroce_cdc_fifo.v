// Queue between two clocks: items of `WIDTH` bits, 2^`LOG_DEPTH` of them, in order, none lost, none twice.
//
// Write and read pointers cross in Gray code. An item shows up on the other side after one edge of `wr_clk` and five of
// `rd_clk`; an item a cycle passes at the rate of the slower clock. `m_data` is a register, `s_ready` and `s_high` are too.
// `s_high`: fewer than `MARGIN` places are free, or it was so up to five cycles of `rd_clk` ago; a writer that never
// looks at `s_ready` has MARGIN - 3 items to end what it began. `s_part`: `PART` places or more are taken, as late.
//
// Both resets come from one source and are asynchronous, see `cdc_reset`: a clock that stands still in reset does no harm.
// Preconditions: LOG_DEPTH >= 4, 4 <= MARGIN < 2^LOG_DEPTH, 0 < PART <= 2^LOG_DEPTH.
(* keep_hierarchy = "yes" *)
module ferroce_cdc_fifo #(
    parameter WIDTH     = 8,
    parameter LOG_DEPTH = 5,
    parameter MARGIN    = 8,
    parameter PART      = 1 << (LOG_DEPTH - 1)
) (
    input  wire             wr_clk,
    input  wire             wr_rst,
    input  wire [WIDTH-1:0] s_data,
    input  wire             s_valid,
    output wire             s_ready,
    output reg              s_high,
    output reg              s_part,

    input  wire             rd_clk,
    input  wire             rd_rst,
    output reg  [WIDTH-1:0] m_data,
    output reg              m_valid,
    input  wire             m_ready
);
    localparam A = LOG_DEPTH;
    localparam [A:0] DEPTH = {1'b1, {A{1'b0}}};

    reg [WIDTH-1:0] mem [0:(1<<A)-1];

    // The pointers in Gray code. Their highest bits are those of the pointers: a second register of each would be merged with
    // it, and the constraints would not find what is left.
    reg  [A:0] wr_gray;
    reg  [A:0] rd_gray;

    // Write side.
    reg  [A-1:0] wr_low;
    wire [A:0] wr_ptr = {wr_gray[A], wr_low};
    reg        wr_full;
    wire       wr_go   = s_valid & s_ready;
    wire [A:0] wr_next = wr_ptr + {{A{1'b0}}, wr_go};

    (* ASYNC_REG = "TRUE" *) reg [A:0] rd_meta;
    (* ASYNC_REG = "TRUE" *) reg [A:0] rd_mid;
    reg  [A:0] rd_seen;
    reg  [A:0] wr_fill;
    wire [A:0] rd_bin;
    wire [A:0] wr_next_gray = wr_next ^ (wr_next >> 1);

    assign s_ready = ~wr_full;

    always @(posedge wr_clk or posedge wr_rst) begin
        if (wr_rst) begin
            wr_low  <= 0;
            wr_gray <= 0;
            wr_full <= 1'b1;
            rd_meta <= 0;
            rd_mid  <= 0;
            rd_seen <= 0;
            wr_fill <= 0;
            s_high  <= 1'b1;
            s_part  <= 1'b0;
        end else begin
            wr_low  <= wr_next[A-1:0];
            wr_gray <= wr_next_gray;
            // Full: the pointers differ in their two highest Gray bits alone.
            wr_full <= wr_next_gray == {~rd_mid[A:A-1], rd_mid[A-2:0]};
            rd_meta <= rd_gray;
            rd_mid  <= rd_meta;
            rd_seen <= rd_bin;
            wr_fill <= wr_ptr - rd_seen;
            s_high  <= wr_fill > DEPTH - MARGIN[A:0];
            s_part  <= wr_fill >= PART[A:0];
        end
    end

    always @(posedge wr_clk) begin
        if (wr_go) mem[wr_ptr[A-1:0]] <= s_data;
    end

    // Read side.
    reg  [A-1:0] rd_low;
    wire [A:0] rd_ptr = {rd_gray[A], rd_low};
    (* ASYNC_REG = "TRUE" *) reg [A:0] wr_meta;
    (* ASYNC_REG = "TRUE" *) reg [A:0] wr_mid;
    wire       rd_go   = (rd_gray != wr_mid) & (~m_valid | m_ready);
    wire [A:0] rd_next = rd_ptr + {{A{1'b0}}, rd_go};

    always @(posedge rd_clk or posedge rd_rst) begin
        if (rd_rst) begin
            rd_low  <= 0;
            rd_gray <= 0;
            wr_meta <= 0;
            wr_mid  <= 0;
            m_valid <= 1'b0;
        end else begin
            rd_low  <= rd_next[A-1:0];
            rd_gray <= rd_next ^ (rd_next >> 1);
            wr_meta <= wr_gray;
            wr_mid  <= wr_meta;
            m_valid <= rd_go | (m_valid & ~m_ready);
        end
    end

    always @(posedge rd_clk) begin
        if (rd_go) m_data <= mem[rd_ptr[A-1:0]];
    end

    genvar i;
    generate
        for (i = 0; i <= A; i = i + 1) begin : bits
            assign rd_bin[i] = ^rd_mid[A:i];
        end
    endgenerate
endmodule
