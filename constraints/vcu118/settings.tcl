# Settings of this board; `-tclargs name=value` of build.tcl changes one.
set board vcu118
set part xcvu9p-flga2104-2L-e
# Versions of the vendor's blocks; empty: the newest that this Vivado has.
set qdma_version {}
set cmac_version {}
# The port: reference clock in MHz, site of the CMAC, sites of its transceivers.
set refclk_mhz 156.25
set cmac_site CMACE4_X0Y7
set gt_group {X1Y48~X1Y51}
# PCIe: site of the block (empty: the default of the vendor's block for this part), quad of lane 0.
set pcie_location {X1Y2}
set pcie_quad GTY_Quad_227
# PCI identity; a product needs one of its own.
set pci_vendor 10ee
set pci_device 9038
set pci_subsystem 0007
set pci_revision 01
set pci_class 020000
