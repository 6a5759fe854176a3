# Alveo U280: configuration and power. The rate of the configuration clock is left at its default.
set_property CONFIG_VOLTAGE 1.8 [current_design]
set_property BITSTREAM.CONFIG.SPI_BUSWIDTH 4 [current_design]
# The flash has more than 2^24 bytes: addresses of four bytes, sent at the falling edge.
set_property BITSTREAM.CONFIG.SPI_32BIT_ADDR Yes [current_design]
set_property BITSTREAM.CONFIG.SPI_FALL_EDGE Yes [current_design]
set_property BITSTREAM.GENERAL.COMPRESS true [current_design]
set_operating_conditions -design_power_budget 160
