// Says: An access of `len` bytes at `addr` is allowed exactly if it has no bytes or all of this holds. The entry that
// its key names is valid and has this key, the same protection domain and the right asked for (a window has none for
// local reads). It does not belong to another queue pair. Each byte addr + b with b < len, without wrapping at 2^64,
// is between `base` and `last` of the region. The answer comes 4 cycles after the request, from the entry as it was in
// the cycle of the request.
// Assumes: nothing.
module check_mr_port (
    input clk,
    input rst,
    input valid, // = check_valid
    input [63:0] addr, // = check_request.addr
    input [31:0] len, // = check_request.len
    input [31:0] key, // = check_request.key
    input [23:0] pd, // = check_request.pd
    input [2:0] right, // = check_request.right
    input [15:0] qpn, // = check_request.qpn
    output [1:0] slot,
    input there, // = valid of u_table.mem[slot] as wdata
    input [31:0] its_key, // = key of u_table.mem[slot] as wdata
    input [23:0] its_pd, // = pd of u_table.mem[slot] as wdata
    input [63:0] base, // = base of u_table.mem[slot] as wdata
    input [63:0] last, // = last of u_table.mem[slot] as wdata
    input local_write, // = local_write of u_table.mem[slot] as wdata
    input remote_write, // = remote_write of u_table.mem[slot] as wdata
    input remote_read, // = remote_read of u_table.mem[slot] as wdata
    input remote_atomic, // = remote_atomic of u_table.mem[slot] as wdata
    input window, // = window of u_table.mem[slot] as wdata
    input qp_only, // = qp_only of u_table.mem[slot] as wdata
    input [23:0] its_qpn, // = qpn of u_table.mem[slot] as wdata
    input done, // = check_done
    input ok // = check_ok
);
    formal_reset reset (.clk(clk), .rst(rst));
    assign slot = key[9:8];
    // Any byte of the access, and its last one.
    (* anyconst *) reg [31:0] b;
    wire [64:0] some = {1'b0, addr} + b;
    wire [64:0] end_ = {1'b0, addr} + len - 1;
    wire may = right == 0 && !window || right == 1 && local_write || right == 2 && remote_write || right == 3 && remote_read
        || right == 4 && remote_atomic;
    wire owned = there && its_key == key && its_pd == pd && may && (!qp_only || its_qpn == qpn);
    wire inside = some >= base && some <= last;
    wire whole = addr >= base && end_ <= last;

    reg [3:0] asked = 0, sound, complete, empty;
    always @(posedge clk) begin
        asked <= rst ? 0 : {asked, valid};
        empty <= {empty, len == 0};
        sound <= {sound, owned && (b >= len || inside)};
        complete <= {complete, owned && whole};
    end
    always @* if (!rst) begin
        assert (done == asked[3]);
        if (done && ok) assert (empty[3] || sound[3]);
        if (done && !ok) assert (!empty[3] && !complete[3]);
        cover (done && ok && !empty[3] && b != 0 && sound[3]);
        cover (done && !ok);
    end
endmodule
