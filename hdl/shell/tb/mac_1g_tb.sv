// mac_1g with its wire led back to itself: `+seed=N`. Prints PASS or stops with an error.
//
// Frames of any length, with pauses on both sides, come back whole, in order, padded with zeros to 60 bytes; what is marked bad or
// damaged on the wire comes back with the error mark; preamble, gap and length on the wire are right.
`timescale 1ps / 1ps
module mac_1g_tb;
    int unsigned seed = 1;
    bit clk, rx_clk, arst;
    always #4000 clk = !clk;
    always @(clk) #1700 rx_clk = clk;

    wire rst, rx_rst;
    ferroce_cdc_reset core_reset (.clk(clk), .arst(arst), .rst(rst));
    ferroce_cdc_reset wire_reset (.clk(rx_clk), .arst(arst), .rst(rx_rst));

    wire [7:0] tx_d;
    wire tx_en;
    logic [7:0] rx_d;
    logic rx_dv, rx_er;
    logic [63:0] s_axis_tdata, m_axis_tdata;
    logic [7:0] s_axis_tkeep, m_axis_tkeep;
    logic s_axis_tlast, s_axis_tuser, s_axis_tvalid, s_axis_tready;
    logic m_axis_tlast, m_axis_tuser, m_axis_tvalid, m_axis_tready;
    wire rx_bad, rx_overflow;
    ferroce_mac_1g dut (.*);

    task automatic fail(string what);
        $display("FAIL at %0t: %s", $time, what);
        $fatal(1);
    endtask
    function automatic logic [7:0] byte_of(int unsigned n, int unsigned i);
        return i == 0 ? 8'(n) : i == 1 ? 8'(n >> 8) : 8'(n * 11 + i);
    endfunction

    int unsigned sent, at, lengths[int unsigned];
    bit marks[int unsigned];
    bit on;
    always @(posedge clk) begin
        if (rst) s_axis_tvalid <= 0;
        else if (!s_axis_tvalid || s_axis_tready) begin
            s_axis_tvalid <= 0;
            if ((at != 0 || on) && ($urandom & 3) != 0) begin
                if (at == 0) begin
                    sent++;
                    lengths[sent] = ($urandom & 3) == 0 ? $urandom_range(2, 4300) : $urandom_range(2, 130);
                    marks[sent] = ($urandom & 15) == 0;
                end
                s_axis_tvalid <= 1;
                for (int i = 0; i < 8; i++) begin
                    s_axis_tdata[8*i+:8] <= at + i < lengths[sent] ? byte_of(sent, at + i) : 8'h5a;
                    s_axis_tkeep[i] <= at + i < lengths[sent];
                end
                s_axis_tlast <= at + 8 >= lengths[sent];
                s_axis_tuser <= at + 8 >= lengths[sent] && marks[sent];
                at = at + 8 >= lengths[sent] ? 0 : at + 8;
            end
        end
    end

    // The wire: some bytes are damaged.
    int unsigned line, gap = 12, wired, damages;
    bit harm[int unsigned];
    // Bytes that the bench sends itself: a frame without a delimiter, with one in its data.
    int unsigned probe;
    always @(posedge clk) begin
        automatic bit hit = tx_en && line > 10 && ($urandom & 4095) == 0;
        automatic bit by_er = ($urandom & 1) == 0;
        rx_d  <= hit && !by_er ? tx_d ^ 8'h10 : tx_d;
        rx_er <= hit && by_er;
        rx_dv <= tx_en;
        if (probe != 0) begin
            rx_dv <= 1;
            rx_er <= 0;
            rx_d  <= probe > 92 ? 8'h55 : probe == 92 ? 8'hd4 : probe == 85 ? 8'hd5 : 8'(probe);
            probe = probe - 1;
        end
        if (tx_en) begin
            if (line == 0) begin
                wired++;
                if (gap < 12) fail("gap");
            end
            if (line < 8 && tx_d !== (line == 7 ? 8'hd5 : 8'h55)) fail("preamble");
            if (hit) begin
                if (harm.exists(wired) == 0) damages++;
                harm[wired] = 1;
            end
            line++;
            gap = 0;
        end else begin
            if (line != 0 && line != 12 + (lengths[wired] < 60 ? 60 : lengths[wired])) fail("length on the wire");
            line = 0;
            gap++;
        end
    end

    int unsigned back, got, good;
    always @(posedge clk) begin
        // The engine takes every beat; a pause now and then is what the queue is for.
        m_axis_tready <= ($urandom & 63) != 0;
        if (rst) got = 0;
        else if (m_axis_tvalid && m_axis_tready) begin
            automatic int unsigned len = lengths[back + 1] < 60 ? 60 : lengths[back + 1];
            automatic bit spoilt = marks[back + 1] || harm.exists(back + 1) != 0;
            for (int i = 0; i < 8; i++) begin
                if (m_axis_tkeep[i] !== (got + i < len)) fail("keep");
                if (m_axis_tkeep[i] && !spoilt
                    && m_axis_tdata[8*i+:8] !== (got + i < lengths[back + 1] ? byte_of(back + 1, got + i) : 8'd0)) fail("data");
            end
            got += 8;
            if (m_axis_tlast != (got >= len)) fail("last");
            if (m_axis_tlast) begin
                if (m_axis_tuser != spoilt) fail($sformatf("mark of frame %0d is %0d", back + 1, m_axis_tuser));
                back++;
                if (!spoilt) good++;
                got = 0;
            end
        end
    end

    initial begin
        void'($value$plusargs("seed=%d", seed));
        void'($urandom(seed));
        arst = 1;
        #100000 arst = 0;
        on = 1;
        #1000000000 on = 0;
        #200000000;
        if (back != sent || good < 100 || damages == 0) fail($sformatf("%0d sent, %0d back, %0d good", sent, back, good));
        probe = 99;
        #10000000;
        if (probe != 0 || m_axis_tvalid || back != sent) fail("a frame without its beginning");
        $display("PASS %0d frames, %0d damaged", back, damages);
        $finish;
    end
endmodule
