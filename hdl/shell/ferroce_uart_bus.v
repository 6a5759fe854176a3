// A serial line as host: reads and writes of 32 bits on AXI4-Lite. For boards without PCIe.
//
// 8N1, `DIVIDE` cycles a bit. To the board: 'W', address, data (4 bytes each, lowest first), answer 'K' or, if the slave refused, 'E'. 'R',
// address, answer 'K' or 'E' and 4 bytes of data. Any other byte is answered '?'. A byte too few waits for ever: send 'R's until one
// is answered to start afresh. Address bits 23:2 go to the bus; bit 22 tells what is beside the registers (see the top).
module ferroce_uart_bus #(
    parameter DIVIDE = 125
) (
    input  wire        clk,
    input  wire        rst,
    input  wire        rxd,
    output reg         txd,

    output wire [23:0] m_axil_awaddr,
    output reg         m_axil_awvalid,
    input  wire        m_axil_awready,
    output wire [31:0] m_axil_wdata,
    output wire [3:0]  m_axil_wstrb,
    output reg         m_axil_wvalid,
    input  wire        m_axil_wready,
    input  wire [1:0]  m_axil_bresp,
    input  wire        m_axil_bvalid,
    output wire        m_axil_bready,
    output wire [23:0] m_axil_araddr,
    output reg         m_axil_arvalid,
    input  wire        m_axil_arready,
    input  wire [31:0] m_axil_rdata,
    input  wire [1:0]  m_axil_rresp,
    input  wire        m_axil_rvalid,
    output wire        m_axil_rready
);
    localparam [15:0] BIT  = DIVIDE[15:0] - 16'd1;
    localparam [15:0] HALF = {1'b0, BIT[15:1]};

    // Receiver: a byte, most of it in `rx_shift`.
    reg         rx_busy;
    reg  [15:0] rx_time;
    reg  [3:0]  rx_bits;
    reg  [7:0]  rx_shift;
    reg         rx_done;
    wire        line;

    ferroce_cdc_level line_in (.clk(clk), .d(rxd), .q(line));

    always @(posedge clk) begin
        rx_done <= 1'b0;
        if (rst) begin
            rx_busy <= 1'b0;
        end else if (~rx_busy) begin
            rx_busy <= ~line;
            rx_time <= HALF;
            rx_bits <= 4'd0;
        end else if (rx_time != 16'd0) begin
            rx_time <= rx_time - 16'd1;
        end else begin
            rx_time  <= BIT;
            rx_bits  <= rx_bits + 4'd1;
            if (rx_bits != 4'd9) rx_shift <= {line, rx_shift[7:1]};
            // A start bit that is gone at its middle was none.
            if (rx_bits == 4'd0 & line) rx_busy <= 1'b0;
            if (rx_bits == 4'd9) begin
                rx_busy <= 1'b0;
                rx_done <= line;
            end
        end
    end

    // Sender: `out_count` bytes of `out_bytes`, lowest first.
    reg  [39:0] out_bytes;
    reg  [2:0]  out_count;
    reg  [9:0]  tx_shift;
    reg  [3:0]  tx_bits;
    reg  [15:0] tx_time;

    // Commands.
    localparam [1:0] WAIT = 2'd0, TAKE = 2'd1, BUS = 2'd2, SAY = 2'd3;
    reg  [1:0]  state;
    reg         write;
    reg  [3:0]  left;
    reg  [63:0] words;

    // A read shifts in four bytes, which then stand at the top.
    wire [31:0] address = write ? words[31:0] : words[63:32];

    assign m_axil_awaddr = address[23:0];
    assign m_axil_araddr = address[23:0];
    assign m_axil_wdata  = words[63:32];
    assign m_axil_wstrb  = 4'hf;
    assign m_axil_bready = 1'b1;
    assign m_axil_rready = 1'b1;

    always @(posedge clk) begin
        case (state)
            WAIT:
                if (rx_done) begin
                    write     <= rx_shift == 8'h57;
                    left      <= rx_shift == 8'h57 ? 4'd8 : 4'd4;
                    out_bytes <= {32'd0, 8'h3f};
                    out_count <= 3'd1;
                    state     <= rx_shift == 8'h57 | rx_shift == 8'h52 ? TAKE : SAY;
                end
            TAKE:
                if (rx_done) begin
                    words <= {rx_shift, words[63:8]};
                    left  <= left - 4'd1;
                    if (left == 4'd1) begin
                        m_axil_awvalid <= write;
                        m_axil_wvalid  <= write;
                        m_axil_arvalid <= ~write;
                        state          <= BUS;
                    end
                end
            BUS: begin
                if (m_axil_awready) m_axil_awvalid <= 1'b0;
                if (m_axil_wready)  m_axil_wvalid  <= 1'b0;
                if (m_axil_arready) m_axil_arvalid <= 1'b0;
                if (m_axil_bvalid | m_axil_rvalid) begin
                    out_bytes <= {m_axil_rdata, (m_axil_bvalid ? m_axil_bresp[1] : m_axil_rresp[1]) ? 8'h45 : 8'h4b};
                    out_count <= m_axil_bvalid ? 3'd1 : 3'd5;
                    state     <= SAY;
                end
            end
            default:
                if (tx_bits == 4'd0 & out_count == 3'd0) state <= WAIT;
        endcase

        if (tx_bits == 4'd0) begin
            if (state == SAY & out_count != 3'd0) begin
                tx_shift  <= {1'b1, out_bytes[7:0], 1'b0};
                tx_bits   <= 4'd10;
                tx_time   <= BIT;
                out_bytes <= {8'd0, out_bytes[39:8]};
                out_count <= out_count - 3'd1;
            end
        end else if (tx_time != 16'd0) begin
            tx_time <= tx_time - 16'd1;
        end else begin
            tx_time  <= BIT;
            tx_shift <= {1'b1, tx_shift[9:1]};
            tx_bits  <= tx_bits - 4'd1;
        end
        txd <= tx_bits == 4'd0 | tx_shift[0];

        if (rst) begin
            state          <= WAIT;
            tx_bits        <= 4'd0;
            m_axil_awvalid <= 1'b0;
            m_axil_wvalid  <= 1'b0;
            m_axil_arvalid <= 1'b0;
            txd            <= 1'b1;
        end
    end

    // The bus has 16 MiB.
    wire unused = &{1'b0, address[31:24], m_axil_bresp[0], m_axil_rresp[0]};
endmodule
