// Stand-ins for cells of the ECP5, to read a shell with other tools: the ports that it uses, and no behaviour. Yosys and nextpnr
// have their own.
/* verilator lint_off DECLFILENAME */
/* verilator lint_off UNDRIVEN */
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off UNUSEDPARAM */

// Clock generator.
(* blackbox *)
module EHXPLLL #(
    parameter CLKI_DIV = 1,
    parameter CLKFB_DIV = 1,
    parameter CLKOP_DIV = 8,
    parameter CLKOP_CPHASE = 0,
    parameter CLKOP_FPHASE = 0,
    parameter CLKOP_ENABLE = "ENABLED",
    parameter FEEDBK_PATH = "CLKOP"
) (
    input  wire CLKI,
    input  wire CLKFB,
    output wire CLKOP,
    input  wire RST,
    input  wire STDBY,
    input  wire PHASESEL0,
    input  wire PHASESEL1,
    input  wire PHASEDIR,
    input  wire PHASESTEP,
    input  wire PHASELOADREG,
    input  wire PLLWAKESYNC,
    input  wire ENCLKOP,
    input  wire ENCLKOS,
    output wire LOCK
);
endmodule

// Output register at both edges.
(* blackbox *)
module ODDRX1F (
    input  wire SCLK,
    input  wire RST,
    input  wire D0,
    input  wire D1,
    output wire Q
);
endmodule

// Input register at both edges.
(* blackbox *)
module IDDRX1F (
    input  wire SCLK,
    input  wire RST,
    input  wire D,
    output wire Q0,
    output wire Q1
);
endmodule

// Delay of a pin, in steps of 25 ps.
(* blackbox *)
module DELAYG #(
    parameter DEL_MODE = "USER_DEFINED",
    parameter DEL_VALUE = 0
) (
    input  wire A,
    output wire Z
);
endmodule
