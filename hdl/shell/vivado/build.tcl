# Makes the project, builds it and writes reports and bitstream:
#
#     vivado -mode batch -source build.tcl -tclargs [name=value ...]
#
# Names are those of settings.tcl, and: project (folder), jobs, until (project, synth, impl or bit).
set here [file dirname [file normalize [info script]]]
source [file join $here settings.tcl]
set project [file join $here vivado]
set jobs 4
set until bit
foreach word $argv {
    if {![regexp {^(\w+)=(.*)$} $word -> name value] || ![info exists $name] || $name in {here argv word}} {
        error "$word: no setting; there are those of settings.tcl, and project, jobs, until"
    }
    set $name $value
}
if {$until ni {project synth impl bit}} {
    error "until=$until: project, synth, impl or bit"
}

create_project -force ferroce_$board $project -part $part
set list [open [file join $here ferroce.f]]
foreach source [split [string trim [read $list]] "\n"] {
    add_files -norecurse [file join $here $source]
}
close $list
set_property top ferroce_$board [current_fileset]
source [file join $here ip.tcl]
foreach name {clocks pins config timing} {
    add_files -fileset constrs_1 -norecurse [file join $here constraints $name.xdc]
}
source [file join $here scope.tcl]
update_compile_order -fileset sources_1
if {$until eq "project"} {
    return
}

# Runs a step and stops if it fails.
proc ferroce_run {run args} {
    global jobs
    launch_runs $run {*}$args -jobs $jobs
    wait_on_run $run
    if {[get_property PROGRESS [get_runs $run]] ne "100%"} {
        error "$run failed: [get_property STATUS [get_runs $run]]; see [get_property DIRECTORY [get_runs $run]]/runme.log"
    }
}

set reports [file join $project reports]
file mkdir $reports
ferroce_run synth_1
open_run synth_1
report_utilization -hierarchical -file [file join $reports synth_utilization.rpt]
# A bit of a crossing that synthesis merged with another register is in no constraint.
foreach {cell from to} {cdc_fifo wr_gray wr_meta cdc_fifo rd_gray rd_meta cdc_count gray meta} {
    set type ferroce_$cell
    set cells [get_cells -hierarchical -filter "REF_NAME =~ $type* || ORIG_REF_NAME == $type"]
    if {[llength $cells] == 0} {
        error "no $type in the netlist: its constraints would apply to nothing"
    }
    foreach cell $cells {
        set sent [llength [get_cells -quiet "$cell/${from}_reg\[*\]"]]
        set taken [llength [get_cells -quiet "$cell/${to}_reg\[*\]"]]
        if {$sent == 0 || $sent != $taken} {
            error "$cell: $sent registers $from, $taken registers $to; as many of each are expected"
        }
    }
}
close_design
if {$until eq "synth"} {
    return
}

set_property STEPS.PHYS_OPT_DESIGN.IS_ENABLED true [get_runs impl_1]
ferroce_run impl_1
open_run impl_1
report_timing_summary -max_paths 20 -report_unconstrained -file [file join $reports timing.rpt]
report_utilization -hierarchical -file [file join $reports utilization.rpt]
report_cdc -details -file [file join $reports cdc.rpt]
report_clock_interaction -file [file join $reports clock_interaction.rpt]
report_bus_skew -file [file join $reports bus_skew.rpt]
report_methodology -file [file join $reports methodology.rpt]
report_drc -file [file join $reports drc.rpt]
report_power -file [file join $reports power.rpt]
# setup, hold and pulse width; the crossings rest on the skew of their bits
foreach {name what} {STATS.WNS setup STATS.WHS hold STATS.TPWS "pulse width"} {
    set slack [get_property $name [get_runs impl_1]]
    puts "worst slack of $what: $slack ns; reports in $reports"
    if {$slack < 0} {
        error "timing is not met ($what): see [file join $reports timing.rpt]"
    }
}
if {[string match *VIOLATED* [report_bus_skew -return_string]]} {
    error "bits of a crossing are too far apart: see [file join $reports bus_skew.rpt]"
}
# A crossing without synchronizer; of one that is good all the same a create_waiver in a constraint says why.
if {[string match *Critical* [report_cdc -details -severity Critical -no_header -return_string]]} {
    error "a crossing between clocks is not safe: see [file join $reports cdc.rpt]"
}
if {$until eq "impl"} {
    return
}

close_design
ferroce_run impl_1 -to_step write_bitstream
puts "bitstream: [glob -directory [get_property DIRECTORY [get_runs impl_1]] *.bit]"
