# Alveo U200: clocks that come in by pins. The others are made by the vendor's blocks, which constrain them: 250 MHz of
# PCIe, the core's clock; 322.265625 MHz of the MAC; 125 MHz, from 250 MHz by an MMCM.
create_clock -name pcie_refclk -period 10.000 [get_ports pcie_refclk_p]
create_clock -name qsfp_refclk -period 6.400 [get_ports qsfp_refclk_p]
