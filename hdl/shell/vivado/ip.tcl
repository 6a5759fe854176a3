# The vendor's blocks, in the project that is open: PCIe bridge and MAC. Uses settings.tcl.
#
# PCIe: the QDMA as a bridge. It has what the engine needs in one block: BAR 0 as AXI4-Lite master, an AXI4 slave bridge to host
# memory with 64-bit addresses that are not translated, and MSI-X requests by vector. The XDMA in bridge mode has no AXI4-Lite
# master of 32 bits beside the slave bridge, and the bare PCIe block no AXI. The queues of the QDMA are not used.
if {![info exists part]} {
    source [file join [file dirname [file normalize [info script]]] settings.tcl]
}

# Makes a block; a property that this version does not have is named, with those that look like it.
proc ferroce_ip {type name version properties} {
    set words [list create_ip -vendor xilinx.com -library ip -name $type -module_name $name]
    if {$version ne ""} {
        lappend words -version $version
    }
    {*}$words
    set ip [get_ips $name]
    foreach {property value} $properties {
        if {[catch {set_property CONFIG.$property $value $ip} why]} {
            set stem [string range $property 0 8]
            set alike [lsearch -all -inline -nocase [list_property $ip] "CONFIG.$stem*"]
            error "$type: CONFIG.$property cannot be $value: $why. This version has: $alike. Change ip.tcl or name another version in settings.tcl."
        }
    }
    generate_target all $ip
}

set qdma {
    mode_selection {Advanced}
    pl_link_cap_max_link_speed {8.0_GT/s}
    pl_link_cap_max_link_width {X16}
    axi_data_width {512_bit}
    axisten_freq {250}
    dma_intf_sel_qdma {AXI_MM}
    en_axi_mm_qdma {true}
    en_bridge_slv {true}
    axibar_notranslate {true}
    csr_axilite_slave {false}
    cfg_mgmt_if {false}
    testname {mm}
    adv_int_usr {true}
    en_transceiver_status_ports {false}
    pf0_bar0_type_qdma {AXI_Lite_Master}
    pf0_bar0_64bit_qdma {true}
    pf0_bar0_prefetchable_qdma {false}
    pf0_bar0_scale_qdma {Megabytes}
    pf0_bar0_size_qdma {4}
    pf0_bar2_type_qdma {DMA}
    pf0_bar2_64bit_qdma {true}
    pf0_bar2_prefetchable_qdma {false}
    pf0_bar2_scale_qdma {Kilobytes}
    pf0_bar2_size_qdma {256}
    PF0_MSIX_CAP_TABLE_SIZE_qdma {01F}
    PF0_MSIX_CAP_TABLE_BIR_qdma {BAR_3:2}
    PF0_MSIX_CAP_PBA_BIR_qdma {BAR_3:2}
}
lappend qdma vendor_id $pci_vendor pf0_device_id $pci_device pf0_subsystem_vendor_id $pci_vendor pf0_subsystem_id $pci_subsystem \
    pf0_revision_id $pci_revision pf0_class_code_qdma $pci_class pf0_class_code_base_qdma [string range $pci_class 0 1] \
    pf0_class_code_sub_qdma [string range $pci_class 2 3] pf0_class_code_interface_qdma [string range $pci_class 4 5]
# The block is made without the constraints of the pins: its transceivers have to be theirs by these.
if {$pcie_location ne ""} {
    lappend qdma pcie_blk_locn $pcie_location
}
lappend qdma en_gt_selection true select_quad $pcie_quad
ferroce_ip qdma qdma_0 $qdma_version $qdma

# FCS is added and removed by the MAC: that is its default.
if {$gt_group eq ""} {
    error "gt_group: the sites of the transceivers of this cage are not known here. Name them, e.g. -tclargs gt_group=X1Y48~X1Y51"
}
set cmac {
    CMAC_CAUI4_MODE {1}
    NUM_LANES {4x25}
    USER_INTERFACE {AXIS}
    GT_DRP_CLK {125.00}
    ENABLE_AXI_INTERFACE {0}
    INCLUDE_STATISTICS_COUNTERS {0}
    INCLUDE_RS_FEC {1}
    ENABLE_PIPELINE_REG {1}
    TX_FLOW_CONTROL {1}
    RX_FLOW_CONTROL {1}
    RX_FORWARD_CONTROL_FRAMES {0}
    RX_CHECK_ACK {1}
    RX_MIN_PACKET_LEN {64}
    RX_MAX_PACKET_LEN {9600}
}
lappend cmac GT_REF_CLK_FREQ $refclk_mhz CMAC_CORE_SELECT $cmac_site GT_GROUP_SELECT $gt_group
ferroce_ip cmac_usplus cmac_usplus_0 $cmac_version $cmac
