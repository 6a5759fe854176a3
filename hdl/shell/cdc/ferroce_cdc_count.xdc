# Crossing cell cdc_count: the bits of a Gray number arrive within a period of the source of each other.
set src_clk [get_clocks -of_objects [get_ports src_clk]]
set dst_clk [get_clocks -of_objects [get_ports dst_clk]]
set_max_delay -datapath_only -from [get_cells {gray_reg[*]}] -to [get_cells {meta_reg[*]}] [get_property -min PERIOD $src_clk]
set_bus_skew -from [get_cells {gray_reg[*]}] -to [get_cells {meta_reg[*]}] [get_property -min PERIOD $src_clk]
