# The peer: does what the console orders, a line each. What it says starts with "peer:".
set -u
port=18515
hex_port=4853

say() { echo "peer: $*"; }
fail() { say "failed: $*"; }

interface() { # by its MAC address
    for folder in /sys/class/net/*; do
        [ "$(cat $folder/address)" = "$1" ] && basename $folder
    done
}

# Frames that a queueing discipline dropped.
dropped() {
    tc -s qdisc show dev $1 root 2>/dev/null | sed -n 's/.*dropped \([0-9]*\),.*/\1/p' | head -n 1
}

gids=/sys/class/infiniband/rxe0/ports/1/gids

# Soft-RoCE on the interface. The table of GIDs is filled behind our back, the device file made.
soft_roce() {
    rdma link add rxe0 type rxe netdev $wire || return 1
    turns=0
    until grep -q ":ffff:" $gids/1 2>/dev/null && grep -q "^fd" $gids/2 2>/dev/null &&
        [ -e /dev/infiniband/uverbs0 ]; do
        turns=$((turns + 1))
        [ $turns -lt 50 ] || return 1
        sleep 0.1
    done
}

# Interface, IP addresses, soft-RoCE on it, and loss both ways: MTU of Ethernet, share of loss or 0.
link() {
    rdma link delete rxe0 2>/dev/null
    tc qdisc delete dev $wire root 2>/dev/null
    tc qdisc delete dev $wire ingress 2>/dev/null
    tc qdisc delete dev ifb0 root 2>/dev/null
    ip link set $wire down
    ip address flush dev $wire
    ip link set $wire mtu $1 up &&
        ip address add $their_ipv4/24 dev $wire &&
        ip address add $their_ipv6/64 dev $wire nodad || { fail "interface $wire"; return; }
    # The kernel now and then enters the first GID twice: then the others do not stand where programs look for them.
    tries=0
    until soft_roce; do
        tries=$((tries + 1))
        [ $tries -lt 5 ] || { fail "soft-RoCE: GIDs $(head -n 3 $gids/0 $gids/1 $gids/2 2>&1 | tr '\n' ' ')"; return; }
        rdma link delete rxe0
    done
    if [ "$2" != 0 ]; then
        # A question that is lost is asked again too late for who modifies a queue pair.
        ip neighbour replace $our_ipv4 lladdr $our_mac dev $wire nud permanent
        ip neighbour replace $our_ipv6 lladdr $our_mac dev $wire nud permanent
        ip link set ifb0 up &&
            tc qdisc add dev $wire root netem loss $2 limit 10000 &&
            tc qdisc add dev ifb0 root netem loss $2 limit 10000 &&
            tc qdisc add dev $wire handle ffff: ingress &&
            tc filter add dev $wire parent ffff: matchall action mirred egress redirect dev ifb0 ||
            { fail "netem"; return; }
    fi
    say ready
}

is_running() { [ -e /tmp/pid ] && kill -0 $(cat /tmp/pid) 2>/dev/null; }

# A program with its arguments; a server listens when it is "started", unless it has ended.
start() { # server or client, words
    role=$1
    shift
    rm -f /tmp/pid /tmp/status /tmp/said
    # Its end is told at once, but not before its start.
    (
        "$@" >/tmp/out 2>&1 &
        echo $! >/tmp/pid
        wait $!
        echo $? >/tmp/status
        until [ -e /tmp/said ]; do sleep 0.05; done
        say ended
    ) &
    turns=0
    until [ -e /tmp/pid ]; do sleep 0.01; done
    while [ $role = server ] && is_running &&
        ! grep -q ":$hex_port [0-9A-F]*:0000 0A " /proc/net/tcp /proc/net/tcp6 &&
        ! rdma resource show cm_id 2>/dev/null | grep -q "state LISTEN"; do
        turns=$((turns + 1))
        [ $turns -lt 600 ] || { fail "$1 does not listen"; : >/tmp/said; return; }
        sleep 0.05
    done
    say started
    : >/tmp/said
}

# All that is known of the program, which ends now.
finish() {
    killed=
    is_running && kill -9 $(cat /tmp/pid) && killed=" killed"
    wait
    # Data that a program shows need not be shown whole.
    [ -e /tmp/out ] && cut -c 1-300 /tmp/out | sed 's/^/| /'
    echo
    say "status $(cat /tmp/status)$killed"
    out=$(dropped $wire) in=$(dropped ifb0)
    say "lost ${out:-0} ${in:-0}"
    for counter in /sys/class/infiniband/rxe0/ports/1/hw_counters/*; do
        say "counter $(basename $counter) $(cat $counter)"
    done
    say told
}

# Where each stands comes first; what is sent before somebody reads is lost.
say hello
read -r wire_mac tcp_mac their_ipv4 their_ipv6 our_mac our_ipv4 our_ipv6
wire=$(interface $wire_mac)
tcp=$(interface $tcp_mac)
echo 0 >/proc/sys/net/ipv6/conf/$wire/accept_dad
ip address add 10.0.2.15/24 dev $tcp && ip link set $tcp up || fail "interface $tcp"
say "up, Linux $(uname -r)"
while read -r order words; do
    case $order in
    link | start | finish) $order $words ;;
    end) break ;;
    *) fail "there is no order $order" ;;
    esac
done
