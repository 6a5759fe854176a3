# Alveo U280: timing exceptions of the pins: lines that are slow or asynchronous.
# Crossings between clocks have their constraints with their cells (constraints/scoped), and there are no clock groups:
# a path between two clocks that no cell covers is timed, and fails.
set_false_path -from [get_ports pcie_reset_n]
set_input_delay 0 [get_ports pcie_reset_n]
set_false_path -to [get_ports hbm_cattrip]
set_output_delay 0 [get_ports hbm_cattrip]
