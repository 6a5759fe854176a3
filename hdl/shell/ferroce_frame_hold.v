// Holds a frame back until it can go without a gap: a MAC takes none within a frame.
//
// 2^`LOG_DEPTH` beats of `WIDTH` bits beside `last`. A frame is begun when it is whole, or when `START` beats of it are here. What
// feeds the store must then give the rest faster than the MAC can have it: if it gives r of the beats that the MAC takes at most,
// `START` is (1 - r) of the longest frame. A `START` of the whole store waits for the end; a frame that is longer goes on as it
// comes, so that nothing can stand still. A beat a cycle; the first beat of a frame comes out two cycles after that for which it
// waits went in.
//
// A frame is let in only while about `FEW` beats are in the store or fewer: what stands here leaves after a pause.
module ferroce_frame_hold #(
    parameter WIDTH     = 576,
    parameter LOG_DEPTH = 9,
    parameter START     = 1 << LOG_DEPTH,
    parameter FEW       = 1 << LOG_DEPTH
) (
    input  wire             clk,
    input  wire             rst,
    input  wire [WIDTH-1:0] s_data,
    input  wire             s_last,
    input  wire             s_valid,
    output wire             s_ready,
    output wire [WIDTH-1:0] m_data,
    output wire             m_last,
    output reg              m_valid,
    input  wire             m_ready
);
    localparam A = LOG_DEPTH;

    reg [WIDTH:0] mem [0:(1<<A)-1];
    reg [WIDTH:0] head;
    reg [A:0]     wr_ptr;
    reg [A:0]     rd_ptr;
    // Frames that are whole in the store; `last` of each beat by its place, to see an end as it is read.
    reg [A:0]     whole;
    reg           ends [0:(1<<A)-1];
    // The frame at the head goes before it is whole.
    reg           early;
    // A frame has begun to come and not ended; another may begin.
    reg           midway;
    reg           few;
    // No more are here than a beginning takes.
    reg           room;

    wire          empty   = wr_ptr == rd_ptr;
    wire          full    = wr_ptr == (rd_ptr ^ {1'b1, {A{1'b0}}});
    wire          end_out = ends[rd_ptr[A-1:0]];
    wire          wr_go   = s_valid & s_ready;
    wire          rd_go   = ~empty & (whole != 0 | early) & (~m_valid | m_ready);
    wire          wr_end  = wr_go & s_last;
    wire          rd_end  = rd_go & end_out;

    wire [A:0]    level   = wr_ptr - rd_ptr;

    assign s_ready = ~full & ~rst & (midway ? room : few);

    always @(posedge clk) begin
        if (wr_go) begin
            mem[wr_ptr[A-1:0]]  <= {s_last, s_data};
            ends[wr_ptr[A-1:0]] <= s_last;
        end
        if (rd_go) head <= mem[rd_ptr[A-1:0]];

        if (rst) begin
            wr_ptr  <= 0;
            rd_ptr  <= 0;
            whole   <= 0;
            early   <= 1'b0;
            midway  <= 1'b0;
            few     <= 1'b1;
            room    <= 1'b1;
            m_valid <= 1'b0;
        end else begin
            wr_ptr  <= wr_ptr + {{A{1'b0}}, wr_go};
            rd_ptr  <= rd_ptr + {{A{1'b0}}, rd_go};
            whole   <= whole + {{A{1'b0}}, wr_end} - {{A{1'b0}}, rd_end};
            early   <= (early | (level >= START[A:0] & whole == 0)) & ~rd_end;
            few     <= level <= FEW[A:0];
            room    <= level <= START[A:0];
            if (wr_go) midway <= ~s_last;
            m_valid <= rd_go | (m_valid & ~m_ready);
        end
    end

    assign {m_last, m_data} = head;
endmodule
