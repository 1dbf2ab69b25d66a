#!/bin/sh
# Simulators side by side: the same messages on a torus in Lintel's models, in SimGrid
# (simgrid.cpp), and in LogGOPSim where it is installed. A table of cases, seconds of each
# from start to end of its process, and messages a second.
#
#   benches/simulators/compare.sh PREFIX [NODES ...]
#
# PREFIX is where `cargo xtask dist --prefix PREFIX` has installed Lintel; NODES are
# powers of two, 64, 512 and 4096 by default. ROUNDS (3) runs of each take turns, so
# that a machine that changes meanwhile changes for all; medians are shown. What takes
# longer than LIMIT (60) seconds is stopped, not tried again, and shown as `>60`; what
# fails, as `failed`.
#
# The cases: `all-reduce` of 8 bytes by recursive doubling, once; `halo`, once 4 KB to
# each of six neighbours; `uniform`, 20 times 64 bytes from each node to others at random,
# 250 ns apart. Links have 2.5 GB/s and 60 ns. Fidelity differs, and so do simulated
# times: `packet` moves each packet over each link, `free` and `loggp` know no contention,
# SimGrid shares links among flows (its default model). `loggp` and LogGOPSim have the
# latter's default parameters.
#
# Debian has SimGrid as libsimgrid-dev. LogGOPSim and txt2bin are taken from PATH, or from
# the folder LOGGOPSIM; where they aren't there, the table ends with the rate that its
# authors give. They go through the same schedules, but for `uniform`.
set -eu
prefix=${1:?"say where Lintel is installed: compare.sh PREFIX [NODES ...]"}
shift
[ $# -gt 0 ] || set -- 64 512 4096
here=$(cd "$(dirname "$0")" && pwd)
limit=${LIMIT:-60}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
PATH=$PATH${LOGGOPSIM:+:$LOGGOPSIM}

tools="packet free loggp"
if g++ -O2 -std=c++17 "$here/simgrid.cpp" -o "$work/simgrid" -lsimgrid 2>"$work/errors"; then
    tools="$tools simgrid"
else
    echo "compare.sh: simgrid.cpp doesn't compile, libsimgrid-dev may be missing: left out" >&2
fi
if command -v LogGOPSim >/dev/null && command -v txt2bin >/dev/null; then
    tools="$tools loggopsim"
else
    echo "compare.sh: LogGOPSim and txt2bin are not here: left out" >&2
fi

sides() { # nodes: of a torus as nearly a cube as can be
    awk -v n="$1" 'BEGIN {
        while (2 ^ e < n) e++
        if (2 ^ e != n || e < 3) exit 1
        print 2 ^ int(e / 3) "x" 2 ^ int((e + 1) / 3) "x" 2 ^ int((e + 2) / 3)
    }' || {
        echo "compare.sh: $1 is no power of two from 8 on" >&2
        exit 2
    }
}

scenario() { # model case sides nodes
    cat <<END
[machine]
model = "$1"
END
    case $1 in
    loggp) ;;
    *) printf 'topology = "torus"\nsize = "%s"\n[machine.link]\nhop_ns = 60\nbandwidth_mb_per_s = 2500\n' "$3" ;;
    esac
    echo "[workload]"
    case $2 in
    all-reduce) printf 'kind = "all-reduce"\nalgorithm = "recursive-doubling"\nbytes = 8\nranks = %s\n' "$4" ;;
    halo) printf 'kind = "halo"\nbytes = 4096\nrepeats = 1\nplaces = "%s"\n' "$3" ;;
    uniform) printf 'kind = "uniform"\nmessages = 20\nbytes = 64\ngap_ns = 250\nranks = %s\n' "$4" ;;
    esac
}

platform() { # sides nodes
    cat <<END
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="torus" prefix="n" suffix="" radical="0-$(($2 - 1))" speed="1Gf" bw="2.5GBps"
           lat="60ns" topology="TORUS" topo_parameters="$(echo "$1" | tr x ,)"/>
</platform>
END
}

schedule() { # case sides: in GOAL, LogGOPSim's language
    awk -v kind="$1" -v sides="$2" '
    function exchange(other, bytes, sent, got) {
        printf "l%d: send %db to %d tag %d\n", ++label, bytes, other, sent
        printf "l%d: recv %db from %d tag %d\n", ++label, bytes, other, got
    }
    function along(rank, side, stride, step,    place) {
        place = int(rank / stride) % side
        return rank + ((place + step + side) % side - place) * stride
    }
    function doubling(rank,    bit, round, other) {
        for (bit = 1; bit < ranks; bit *= 2) {
            other = int(rank / bit) % 2 ? rank - bit : rank + bit
            exchange(other, 8, round, round)
            round++
            if (label == 2) continue
            for (older = label - 3; older <= label - 2; older++) {
                printf "l%d requires l%d\n", label - 1, older
                printf "l%d requires l%d\n", label, older
            }
        }
    }
    function halo(rank,    d, stride) {
        stride = 1
        for (d = 1; d <= 3; stride *= side[d++]) {
            exchange(along(rank, side[d], stride, 1), 4096, 2 * d, 2 * d + 1)
            exchange(along(rank, side[d], stride, -1), 4096, 2 * d + 1, 2 * d)
        }
    }
    BEGIN {
        split(sides, side, "x")
        ranks = side[1] * side[2] * side[3]
        print "num_ranks " ranks
        for (rank = 0; rank < ranks; rank++) {
            print "rank " rank " {"
            label = 0
            if (kind == "halo") halo(rank)
            else doubling(rank)
            print "}"
        }
    }'
}

prepare() { # case nodes sides: files under $work/case
    for model in packet free loggp; do
        scenario "$model" "$1" "$3" "$2" >"$work/$1.$2.$model.toml"
    done
    platform "$3" "$2" >"$work/$2.xml"
    case "$tools $1" in
    *uniform) ;;
    *loggopsim*)
        schedule "$1" "$3" >"$work/$1.$2.goal"
        txt2bin -i "$work/$1.$2.goal" -o "$work/$1.$2.bin" >/dev/null
        ;;
    esac
}

run() { # tool case nodes sides
    case $1 in
    simgrid)
        case $2 in
        all-reduce) set -- "$@" 1 8 0 ;;
        halo) set -- "$@" 1 4096 0 ;;
        uniform) set -- "$@" 20 64 250 ;;
        esac
        timeout "$limit" "$work/simgrid" "$work/$3.xml" "$2" "$4" "$5" "$6" "$7" \
            --log=root.thres:error --cfg=contexts/stack-size:64 --cfg=contexts/guard-size:0
        ;;
    loggopsim) timeout "$limit" LogGOPSim -b -f "$work/$2.$3.bin" ;;
    *) timeout "$limit" "$prefix/bin/lintel" sim run "$work/$2.$3.$1.toml" --json - ;;
    esac >"$work/output" 2>"$work/errors"
}

measure() { # tool case nodes sides: a line of case, nodes, tool, seconds, M events/s
    case "$2 $1" in "uniform loggopsim") return ;; esac
    if grep -q "^$2 $3 $1 [>f]" "$work/all"; then return; fi
    begin=$(date +%s%N)
    status=0
    run "$@" || status=$?
    end=$(date +%s%N)
    case $status in
    0) seconds=$(awk -v ns=$((end - begin)) 'BEGIN { print ns / 1e9 }') ;;
    124) seconds=">$limit" ;;
    *)
        echo "compare.sh: $1 failed on $2, $3 nodes:" >&2
        cat "$work/errors" >&2
        seconds=failed
        ;;
    esac
    rate=$(awk '/"events":/ { e = $2 } /"seconds":/ { if ($2 > 0) print e / $2 / 1e6 }' "$work/output")
    echo "$2 $3 $1 $seconds ${rate:--}" >>"$work/all"
}

: >"$work/all"
for nodes in "$@"; do
    sides=$(sides "$nodes")
    for kind in all-reduce halo uniform; do
        prepare "$kind" "$nodes" "$sides"
        for _ in $(seq "${ROUNDS:-3}"); do
            for tool in $tools; do
                measure "$tool" "$kind" "$nodes" "$sides"
            done
        done
    done
done

awk -v tools="$tools" '
function median(text,    n, i, j, t, v) {
    n = split(text, v, " ")
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && v[j] + 0 < v[j - 1] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
    return v[int((n + 1) / 2)]
}
function messages(kind, nodes) {
    if (kind == "halo") return 6 * nodes
    if (kind == "uniform") return 20 * nodes
    return nodes * int(log(nodes) / log(2) + 0.5)
}
{
    point = $1 " " $2
    if (!(point in seen)) { seen[point] = 1; order[++points] = point }
    seconds[point " " $3] = seconds[point " " $3] " " $4
    rate[point " " $3] = rate[point " " $3] " " $5
}
END {
    n = split(tools, tool, " ")
    printf "%-10s %6s %9s ", "case", "nodes", "messages"
    for (k = 1; k <= n; k++) printf " %10s", tool[k]
    printf "   (seconds) "
    for (k = 1; k <= n; k++) printf " %10s", tool[k]
    print "   (thousand messages a second)"
    for (p = 1; p <= points; p++) {
        split(order[p], word, " ")
        sent = messages(word[1], word[2])
        printf "%-10s %6d %9d ", word[1], word[2], sent
        for (k = 1; k <= n; k++) {
            took = median(seconds[order[p] " " tool[k]])
            printf " %10s", took == "" ? "-" : took ~ /[>f]/ ? took : sprintf("%.3f", took)
        }
        printf "             "
        for (k = 1; k <= n; k++) {
            took = median(seconds[order[p] " " tool[k]])
            printf " %10s", took == "" || took ~ /[>f]/ ? "-" : sprintf("%.1f", sent / took / 1e3)
        }
        print ""
    }
    print "\nLintel, of its own events, without starting up:"
    for (p = 1; p <= points; p++) {
        split(order[p], word, " ")
        printf "%-10s %6d ", word[1], word[2]
        for (k = 1; k <= 3; k++) printf "  %s %.2f M/s", tool[k], median(rate[order[p] " " tool[k]])
        print ""
    }
    print "LogGOPSim: \"more than 1 million events per second on a single processor\""
    print "(Hoefler, Schneider, Lumsdaine, HPDC 2010); an event of it is an operation or a message."
}' "$work/all"
