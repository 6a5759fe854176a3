# What the guest does. Any command that fails ends it.
set -eu
pci=/sys/bus/pci/devices
# The engines, and the models.
first=0000:00:04.0 second=0000:00:05.0
app=0000:00:06.0 peer=0000:00:07.0

for card in $first $second $app $peer; do # as the errors of the driver say
    echo vfio-pci >$pci/$card/driver_override
    echo $card >/sys/bus/pci/drivers_probe
done
# Every page that was pinned for a card was given back.
unpinned() {
    echo 1 >/proc/sys/vm/stat_refresh # else up to a second old
    set -- $(grep nr_foll_pin_ /proc/vmstat | cut -d' ' -f2)
    [ $1 -gt 0 ] && [ $1 = $2 ] || { echo "pinned $1 pages, released $2"; return 1; }
}
# Waits until a program has said something, which is in a file.
said() { # who, what
    turns=0
    until grep -q "$2" /tmp/$1; do
        turns=$((turns + 1))
        [ $turns -lt 1200 ] || { echo "$1 does not say $2:"; cat /tmp/$1; exit 1; }
        sleep 0.1
    done
}

two_cards $first $second
unpinned
echo "ok operations"

# An unmodified program of Debian's, on each card.
pingpong() { # card, address, peer
    LD_LIBRARY_PATH=/lib/ferroce FERROCE_DEVICE=$1 FERROCE_IP=$2 ibv_rc_pingpong -g 1 -s 1000 -n 8 -c $3
}
pingpong $first 10.0.0.1 "" >/tmp/server &
server=$!
turns=0
until pingpong $second 10.0.0.2 127.0.0.1; do # until the first listens
    turns=$((turns + 1))
    [ $turns -lt 60 ] || { cat /tmp/server; exit 1; }
    sleep 1
done
wait $server
unpinned
echo "ok ping-pong"

# An application on one model, its peer on the other: each hears on a pipe.
mkfifo /tmp/app.in /tmp/peer.in
start() {
    : >/tmp/app && : >/tmp/peer
    one_card $app 1 17 </tmp/app.in >/tmp/app 2>&1 &
    process=$!
    one_card $peer 2 17 </tmp/peer.in >/tmp/peer 2>&1 &
    other=$!
    exec 3>/tmp/app.in 4>/tmp/peer.in
    said app "^end"
    said peer "^end"
    cat /tmp/app >&4
    cat /tmp/peer >&3
    echo write >&3
    echo write >&4
    said app "^wrote Success"
    said peer "^wrote Success"
}
# The peer gets the error that says so.
missed() {
    echo write >&4
    said peer "^wrote RetryExcErr"
    closed
}
closed() {
    echo end >&4
    exec 3>&- 4>&-
    wait $other
}
as_new() {
    start
    echo end >&3
    wait $process
    closed
    unpinned
}

start
echo forever >&3
said app "^going"
grep -q "VmLck:.* [1-9][0-9]* kB" /proc/$process/status
kill -9 $process
wait $process || true
missed
as_new
echo "ok killed"

start
echo reset >&3
wait $process
grep -q "^reset" /tmp/app
missed
as_new
echo "ok reset"

# The card ends: of that no interrupt tells, and the application ends by itself.
start
echo forever >&3
said app "^going"
echo "lose the card"
said app "^ended: .* the card is gone"
status=0
wait $process || status=$?
[ $status = 1 ]
missed
unpinned
echo "ok lost"
