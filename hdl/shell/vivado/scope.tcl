# Adds the constraints of the crossing cells, each to every instance of its cell. They use clocks that other constraints make, so
# they come last, and in implementation alone.
set scoped [file join [file dirname [file normalize [info script]]] constraints scoped]
foreach file [lsort [glob -directory $scoped *.xdc]] {
    add_files -fileset constrs_1 -norecurse $file
    set added [get_files $file]
    set_property SCOPED_TO_REF [file rootname [file tail $file]] $added
    set_property PROCESSING_ORDER LATE $added
    set_property USED_IN_SYNTHESIS false $added
}
