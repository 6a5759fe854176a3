// 1G Ethernet MAC for RGMII: bytes of the wire to beats of 64 bits and back. Preamble, FCS, padding, gap.
//
//     s_axis ─► frame_hold ─► bytes, pad, FCS ─► tx_d            m_axis ◄─ beats ◄─ cdc_fifo ◄─ bytes, FCS check ◄─ rx_d
//
// Full duplex at 1 Gb/s alone: `tx_d` and `rx_d` carry a byte a cycle. To the wire a frame waits until it is whole. From the wire it
// cannot be held up: a frame for which there is no room is dropped whole or ends with the error mark, as one with a wrong FCS or a
// receive error does. `rx_bad` and `rx_overflow` (domain of `rx_clk`) are high for a cycle each.
module ferroce_mac_1g (
    input  wire        clk,
    input  wire        rst,
    input  wire        rx_clk,
    input  wire        rx_rst,

    output reg  [7:0]  tx_d,
    output reg         tx_en,
    input  wire [7:0]  rx_d,
    input  wire        rx_dv,
    input  wire        rx_er,

    input  wire [63:0] s_axis_tdata,
    input  wire [7:0]  s_axis_tkeep,
    input  wire        s_axis_tlast,
    input  wire        s_axis_tuser,
    input  wire        s_axis_tvalid,
    output wire        s_axis_tready,

    output reg  [63:0] m_axis_tdata,
    output reg  [7:0]  m_axis_tkeep,
    output reg         m_axis_tlast,
    output reg         m_axis_tuser,
    output reg         m_axis_tvalid,
    input  wire        m_axis_tready,

    output wire        rx_bad,
    output wire        rx_overflow
);
    // CRC-32 of IEEE 802.3, reflected, a byte.
    function [31:0] crc_byte(input [31:0] crc, input [7:0] data);
        integer i;
        begin
            crc_byte = crc ^ {24'd0, data};
            for (i = 0; i < 8; i = i + 1)
                crc_byte = (crc_byte >> 1) ^ (crc_byte[0] ? 32'hedb88320 : 32'd0);
        end
    endfunction
    // What is left of a frame with a right FCS.
    localparam [31:0] RESIDUE = 32'hdebb20e3;

    // To the wire: 8 KiB, more than the longest frame.
    wire [72:0] beat;
    wire        beat_last;
    wire        beat_valid;
    wire        beat_ready;

    ferroce_frame_hold #(.WIDTH(73), .LOG_DEPTH(10)) hold (
        .clk(clk),
        .rst(rst),
        .s_data({s_axis_tuser, s_axis_tkeep, s_axis_tdata}),
        .s_last(s_axis_tlast),
        .s_valid(s_axis_tvalid),
        .s_ready(s_axis_tready),
        .m_data(beat),
        .m_last(beat_last),
        .m_valid(beat_valid),
        .m_ready(beat_ready)
    );

    localparam [2:0] IDLE = 3'd0, PREAMBLE = 3'd1, DATA = 3'd2, PAD = 3'd3, FCS = 3'd4, GAP = 3'd5;
    reg  [2:0]  state;
    // Bytes of this state so far; bytes of the frame so far, up to 60.
    reg  [3:0]  step;
    reg  [5:0]  size;
    reg  [2:0]  lane;
    reg  [31:0] tx_crc;
    // The frame is to be spoilt.
    reg         spoil;

    wire [7:0]  lane_data = beat[8*lane +: 8];
    wire        lane_end  = lane == 3'd7 | ~beat[64 + {4'd0, lane} + 7'd1];
    wire        frame_end = lane_end & beat_last;
    wire        big       = size == 6'd59 | size == 6'd60;

    assign beat_ready = state == DATA & lane_end;

    always @(posedge clk) begin
        tx_en <= state != IDLE & state != GAP;
        step  <= step + 4'd1;
        case (state)
            IDLE: begin
                step   <= 4'd0;
                size   <= 6'd0;
                lane   <= 3'd0;
                spoil  <= 1'b0;
                tx_crc <= 32'hffffffff;
                tx_d   <= 8'd0;
                if (beat_valid) state <= PREAMBLE;
            end
            PREAMBLE: begin
                tx_d <= step == 4'd7 ? 8'hd5 : 8'h55;
                if (step == 4'd7) state <= DATA;
            end
            DATA: begin
                step   <= 4'd0;
                tx_d   <= lane_data;
                tx_crc <= crc_byte(tx_crc, lane_data);
                lane   <= lane_end ? 3'd0 : lane + 3'd1;
                size   <= size == 6'd60 ? size : size + 6'd1;
                spoil  <= spoil | beat[72];
                if (frame_end) state <= big ? FCS : PAD;
            end
            PAD: begin
                step   <= 4'd0;
                tx_d   <= 8'd0;
                tx_crc <= crc_byte(tx_crc, 8'd0);
                size   <= size + 6'd1;
                if (size == 6'd59) state <= FCS;
            end
            FCS: begin
                // A wrong FCS spoils the frame.
                tx_d   <= ~tx_crc[7:0] ^ {8{spoil}};
                tx_crc <= {8'd0, tx_crc[31:8]};
                if (step == 4'd3) begin
                    state <= GAP;
                    step  <= 4'd0;
                end
            end
            default: begin
                tx_d <= 8'd0;
                if (step == 4'd11) state <= IDLE;
            end
        endcase
        if (rst) begin
            state <= IDLE;
            tx_en <= 1'b0;
        end
    end

    // From the wire. Four bytes wait, so that the FCS does not go on with the frame.
    reg  [39:0] late;
    reg  [2:0]  held;
    reg         begun;
    reg         was_dv;
    // The beginning was seen, and only preamble since.
    reg         lead;
    reg         error;
    reg  [31:0] rx_crc;
    wire        good  = rx_crc == RESIDUE & ~error;

    reg  [7:0]  byte_data;
    reg         byte_last;
    reg         byte_user;
    reg         byte_valid;

    always @(posedge rx_clk) begin
        byte_valid <= 1'b0;
        byte_last  <= 1'b0;
        byte_user  <= 1'b0;
        was_dv     <= rx_dv | rx_rst;
        lead       <= rx_dv & ~rx_er & ~rx_rst & rx_d == 8'h55 & (lead | ~was_dv);
        if (rx_rst) begin
            begun <= 1'b0;
            held  <= 3'd0;
        end else if (~begun) begin
            held   <= 3'd0;
            error  <= 1'b0;
            rx_crc <= 32'hffffffff;
            // A frame begins behind its delimiter; one whose beginning was not seen does not.
            begun  <= rx_dv & lead & ~rx_er & rx_d == 8'hd5;
        end else if (rx_dv) begin
            late   <= {late[31:0], rx_d};
            rx_crc <= crc_byte(rx_crc, rx_d);
            error  <= error | rx_er;
            if (held == 3'd5) begin
                byte_valid <= 1'b1;
                byte_data  <= late[39:32];
            end else begin
                held <= held + 3'd1;
            end
        end else begin
            // The oldest byte is the last of the frame; what is shorter than an FCS and a byte was no frame.
            begun      <= 1'b0;
            byte_valid <= held == 3'd5;
            byte_data  <= late[39:32];
            byte_last  <= 1'b1;
            byte_user  <= ~good;
        end
    end

    wire [7:0] drop_data;
    wire       drop_last;
    wire       drop_user;
    wire       drop_valid;
    wire       drop_keep;
    wire       high;
    wire       part;
    wire       ready;

    ferroce_rx_drop #(.WIDTH(8)) dropper (
        .clk(rx_clk),
        .mac_rst(rx_rst),
        .queue_rst(rx_rst),
        .s_tdata(byte_data),
        .s_tkeep(1'b1),
        .s_tlast(byte_last),
        .s_tuser(byte_user),
        .s_tvalid(byte_valid),
        .m_tdata(drop_data),
        .m_tkeep(drop_keep),
        .m_tlast(drop_last),
        .m_tuser(drop_user),
        .m_tvalid(drop_valid),
        .m_high(high),
        .overflow(rx_overflow),
        .bad(rx_bad)
    );

    wire [7:0] in_data;
    wire       in_last;
    wire       in_user;
    wire       in_valid;
    wire       in_ready = ~m_axis_tvalid | m_axis_tready;

    ferroce_cdc_fifo #(.WIDTH(10), .LOG_DEPTH(6), .MARGIN(8)) queue (
        .wr_clk(rx_clk),
        .wr_rst(rx_rst),
        .s_data({drop_user, drop_last, drop_data}),
        .s_valid(drop_valid),
        .s_ready(ready),
        .s_high(high),
        .s_part(part),
        .rd_clk(clk),
        .rd_rst(rst),
        .m_data({in_user, in_last, in_data}),
        .m_valid(in_valid),
        .m_ready(in_ready)
    );

    // Bytes to beats.
    reg  [2:0] fill;
    reg  [7:0] keep;
    wire [7:0] keep_next = keep | (8'd1 << fill);

    always @(posedge clk) begin
        if (in_valid & in_ready) begin
            m_axis_tdata[8*fill +: 8] <= in_data;
            m_axis_tkeep              <= keep_next;
            m_axis_tlast              <= in_last;
            m_axis_tuser              <= in_user;
        end
        if (rst) begin
            fill          <= 3'd0;
            keep          <= 8'd0;
            m_axis_tvalid <= 1'b0;
        end else if (in_ready) begin
            m_axis_tvalid <= in_valid & (in_last | fill == 3'd7);
            if (in_valid) begin
                fill <= in_last ? 3'd0 : fill + 3'd1;
                keep <= in_last | fill == 3'd7 ? 8'd0 : keep_next;
            end
        end
    end

    wire unused = &{1'b0, ready, drop_keep, part};
endmodule
