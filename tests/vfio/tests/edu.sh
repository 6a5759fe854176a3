# What the guest does. Any command that fails ends it.
set -eu
pci=/sys/bus/pci/devices

bind() { # as the errors of the driver say
    echo vfio-pci >$pci/$1/driver_override
    [ ! -e $pci/$1/driver ] || echo $1 >$pci/$1/driver/unbind
    echo $1 >/sys/bus/pci/drivers_probe
}
group() { echo /dev/vfio/$(basename $(readlink $pci/$1/iommu_group)); }
# Every page that was pinned for a device was given back.
unpinned() {
    echo 1 >/proc/sys/vm/stat_refresh # else up to a second old
    set -- $(grep nr_foll_pin_ /proc/vmstat | cut -d' ' -f2)
    [ $1 = $2 ] || { echo "pinned $1 pages, released $2"; return 1; }
}
as_user() { setpriv --reuid 1000 --regid 1000 --clear-groups "$@"; }
address=0000:00:04.0
echo 4 >/proc/sys/vm/nr_hugepages

vfio-checks error nonsense Address
vfio-checks error 0000:00:1e.0 Absent
vfio-checks error 0000:81:00.0 NoIommu
vfio-checks error $address Driver
vfio-checks error 0000:00:06.0 Driver
shared=0000:01:01.0
bind $shared
vfio-checks error $shared NotViable
bind $address
as_user vfio-checks error $address NoRights
chown user $(group $address)
(ulimit -l 64 && as_user vfio-checks limit $address)
vfio-checks bar $address
echo "ok bad input"

vfio-checks edu $address
resource=$pci/0000:00:07.0/resource2
echo 1 >$pci/0000:00:07.0/enable
vfio-checks device-memory $address $resource
unpinned

# A process that is killed in the middle of a transfer leaves nothing behind.
mkfifo /tmp/in
hold() {
    : >/tmp/out # what a process before said is not what this one says
    vfio-checks hold $address </tmp/in >/tmp/out &
    process=$!
    exec 3>/tmp/in
    until grep -q holding /tmp/out; do sleep 0.1; done
}
hold
grep -q 'VmLck:.* 8192 kB' /proc/$process/status
vfio-checks error $address Busy
kill -9 $process
wait $process || true
exec 3>&-
unpinned
vfio-checks edu $address
echo "ok killed"

# A card that leaves the bus while it is open leaves when it is closed, and may come back.
hold
echo 1 >$pci/$address/remove &
remover=$!
sleep 1
echo >&3
wait $process
exec 3>&-
wait $remover
grep -q dropped /tmp/out
vfio-checks error $address Absent
unpinned
echo 1 >/sys/bus/pci/rescan
bind $address
vfio-checks edu $address
unpinned
echo "ok gone"
