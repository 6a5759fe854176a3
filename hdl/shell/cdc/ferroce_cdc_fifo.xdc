# Crossing cell cdc_fifo: the bits of a Gray pointer arrive within a period of its source of each other, and an item stands in the
# memory when its pointer arrives. In block RAM the memory has a clock on each side and nothing crosses; in LUT RAM its
# outputs do, and they rest while they are read.
set wr_clk [get_clocks -of_objects [get_ports wr_clk]]
set rd_clk [get_clocks -of_objects [get_ports rd_clk]]
set_max_delay -datapath_only -from [get_cells {wr_gray_reg[*]}] -to [get_cells {wr_meta_reg[*]}] [get_property -min PERIOD $wr_clk]
set_max_delay -datapath_only -from [get_cells {rd_gray_reg[*]}] -to [get_cells {rd_meta_reg[*]}] [get_property -min PERIOD $rd_clk]
set_bus_skew -from [get_cells {wr_gray_reg[*]}] -to [get_cells {wr_meta_reg[*]}] [get_property -min PERIOD $wr_clk]
set_bus_skew -from [get_cells {rd_gray_reg[*]}] -to [get_cells {rd_meta_reg[*]}] [get_property -min PERIOD $rd_clk]
set_max_delay -quiet -datapath_only -from $wr_clk -to [get_cells -quiet {m_data_reg[*]}] [get_property -min PERIOD $wr_clk]
