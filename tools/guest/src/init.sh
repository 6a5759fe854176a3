#!/bin/sh
# The kernel speaks on the first serial port; the second is the console of the script alone, so that
# no message of the kernel stands in the middle of a line.
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs tmp /dev/shm
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
stty raw -echo </dev/ttyS1
exec </dev/ttyS1 >/dev/ttyS1 2>&1
if [ -f /etc/modules ]; then
    while read -r module; do
        insmod "$module" || echo "ferroce-guest: $module is not loaded"
    done </etc/modules
fi
ip link set lo up
cd /root
sh /job
echo "
ferroce-guest: exit $?"
# Setting the terminal waits until everything was printed.
stty raw -echo </dev/ttyS1
poweroff -f
