# Settings of this board; `-tclargs name=value` of build.tcl changes one.
set board u50
set part xcu50-fsvh2104-2-e
# Versions of the vendor's blocks; empty: the newest that this Vivado has.
set qdma_version {}
set cmac_version {}
# The port: reference clock in MHz, site of the CMAC, sites of its transceivers.
set refclk_mhz 161.1328125
set cmac_site CMACE4_X0Y4
set gt_group {X0Y28~X0Y31}
# PCIe: site of the block (empty: the default of the vendor's block for this part), quad of lane 0.
set pcie_location {PCIE4C_X1Y0}
set pcie_quad GTY_Quad_227
# PCI identity; a product needs one of its own.
set pci_vendor 10ee
set pci_device 9038
set pci_subsystem 0007
set pci_revision 01
set pci_class 020000
