#!/bin/sh
# Latency of collective operations beside Open MPI's and MPICH's, by the same program
# (latency.c): a table of ranks, operation, bytes and medians in microseconds.
#
#   benches/collectives/compare.sh PREFIX [RANKS ...]
#
# PREFIX is where `cargo xtask dist --prefix PREFIX` has installed Lintel; RANKS are
# 2 and 4 by default. ROUNDS (3) jobs of each take turns, so that a machine that
# changes meanwhile changes for all; BUDGET (50) is the time for each point of a job in
# milliseconds. An MPI that isn't installed (Debian: libopenmpi-dev openmpi-bin,
# libmpich-dev mpich) is left out.
#
# With USED=1 each rank writes what it gives before an operation, and its time includes reading what it
# gets.
#
# With NETWORK=udp or NETWORK=ofi each rank is a node of its own, and Open MPI exchanges
# messages over TCP; MPICH, which uses shared memory all the same, is left out.
set -eu
prefix=${1:?"say where Lintel is installed: compare.sh PREFIX [RANKS ...]"}
shift
[ $# -gt 0 ] || set -- 2 4
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
budget=${BUDGET:-50}
used=${USED:+used}

PKG_CONFIG_PATH=$prefix/lib/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046 # flags are words
cc -O2 -I"$prefix/include" "$here/latency.c" -o "$work/lintel" $(pkg-config --cflags --libs ptlcoll)
network=${NETWORK:-}
if [ -n "$network" ]; then
    kinds="offloaded host" mpis=openmpi
else
    kinds="shared offloaded host" mpis="openmpi mpich"
fi
for mpi in $mpis; do
    if command -v "mpiexec.$mpi" >/dev/null &&
        "mpicc.$mpi" -O2 -DWITH_MPI "$here/latency.c" -o "$work/$mpi" 2>/dev/null; then
        kinds="$kinds $mpi"
    else
        echo "compare.sh: mpicc.$mpi and mpiexec.$mpi are not here, or not whole: left out" >&2
    fi
done

start() { # kind ranks
    # shellcheck disable=SC2086 # options are words
    case $1 in
    shared) "$prefix/bin/yod" -n "$2" "$work/lintel" "$budget" $used ;;
    offloaded | host)
        PTLCOLL_PROGRESS=$1 "$prefix/bin/yod" -n "$2" ${network:+--nodes $2 --nal $network} "$work/lintel" "$budget" $used
        ;;
    openmpi)
        mpiexec.openmpi --allow-run-as-root --oversubscribe ${network:+--mca pml ob1 --mca btl tcp,self} \
            -n "$2" "$work/openmpi" "$budget" $used
        ;;
    mpich) mpiexec.mpich -n "$2" "$work/mpich" "$budget" $used ;;
    esac
}

for ranks in "$@"; do
    for round in $(seq "${ROUNDS:-3}"); do
        for kind in $kinds; do
            start "$kind" "$ranks" | sed "s/^/$kind $round /" >>"$work/all"
        done
    done
done

awk -v kinds="$kinds" '
function median(key,    n, i, j, t, v) {
    n = split(values[key], v, " ")
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && v[j] + 0 < v[j - 1] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
    return v[int((n + 1) / 2)]
}
{
    point = $3 " " $4 " " $5
    if (!(point in seen)) { seen[point] = 1; order[++points] = point }
    values[$1 " " point] = values[$1 " " point] " " $6
}
END {
    n = split(kinds, kind, " ")
    printf "%5s %-10s %8s", "ranks", "operation", "bytes"
    for (k = 1; k <= n; k++) printf " %12s", kind[k]
    print "   (medians, us)"
    for (p = 1; p <= points; p++) {
        split(order[p], word, " ")
        printf "%5d %-10s %8d", word[1], word[2], word[3]
        for (k = 1; k <= n; k++) printf " %12.2f", median(kind[k] " " order[p])
        print ""
    }
}' "$work/all"
