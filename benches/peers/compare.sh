#!/bin/sh
# Point-to-point messages and one-sided operations within a node: Lintel beside UCX, Open MPI,
# MPICH and libfabric, in turns and on the same two cores. Prints a Markdown table of medians;
# README.md in this folder describes its rows and columns.
#
#   benches/peers/compare.sh PREFIX
#
# PREFIX is where `cargo xtask dist --prefix PREFIX` has installed Lintel. Variables:
#   CORES (0,1)                 one for each rank
#   USED                        if set, latencies are those of bytes that are written before they are sent,
#                               and read once they have arrived, without libfabric's column
#   SIZES (8 64 1024 4096 8192 65536 1048576)
#   ROUNDS (3)                  turns that each column gets
#   BUDGET (200)                milliseconds for each point of a turn
#   LIMIT (120)                 seconds after which a command is ended; its rows stay empty
#   OPENMPI_CC, MPICH_CC        compilers of other builds; mpiexec is taken from beside them
#   UCX_PREFIX                  where another UCX is installed
#   FI_PINGPONG                 program of another build
#   PORTALS_OPENMPI             prefix of an Open MPI with mtl/portals4: a column of its own
set -eu
prefix=${1:?"say where Lintel is installed: compare.sh PREFIX"}
here=$(cd "$(dirname "$0")" && pwd)
cores=${CORES:-0,1}
first=${cores%,*}
second=${cores#*,}
sizes=${SIZES:-8 64 1024 4096 8192 65536 1048576}
rounds=${ROUNDS:-3}
budget=${BUDGET:-200}
limit=${LIMIT:-120}
ucx_prefix=${UCX_PREFIX:-}
fi_pingpong=${FI_PINGPONG:-fi_pingpong}
openmpi_cc=${OPENMPI_CC:-}
mpich_cc=${MPICH_CC:-}
unset MPICH_CC # by which MPICH's mpicc itself finds its compiler
port=$((20000 + $$ % 20000))
work=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM
: >"$work/all"

# Whether a command is there.
is_here() { command -v "$1" >/dev/null 2>&1; }

note() { echo "compare.sh: $*" >&2; }

# bounded COMMAND...: ends it after the limit; what it wrote on standard error is shown if it fails.
bounded() {
    if ! timeout -k 5 "$limit" "$@" 2>"$work/error"; then
        note "failed, or took longer than $limit s: $*"
        tail -n 5 "$work/error" >&2
    fi
}

# --- what each column runs: lines of measure, bytes and value -------------------------------

lintel() {
    list=$(echo "$sizes" | tr ' ' ,)
    bounded "$prefix/bin/lintel" perf put rate bandwidth overlap delay gups --csv - \
        --sizes "$list" --cores "$cores" --time "$budget" --rounds 3 ${USED:+--used} |
        awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) { gsub(/"/, "", $i); at[$i] = i }; next }
        { gsub(/"[^"]*"/, "quoted") } # some hold commas
        function say(measure, column) { if ($at[column] != "") print measure, $at["bytes"], $at[column] }
        $1 == "put" { say("latency", "median_us") }
        $1 == "bandwidth" && $2 == "put" && $3 >= 1024 { say("bandwidth", "gb_per_s") }
        $1 == "rate" && $2 ~ /^events/ { say("rate", "million_per_s") }
        $1 == "rate" && $2 ~ /^counted at/ { say("rate-counted", "million_per_s") }
        $1 == "overlap" && $2 ~ /computes$/ { say("overlap-" substr($2, 1, 6), "overlap %") }
        $1 == "delay" && $2 == "put" { say("delivered", "delivered median µs"); say("acknowledged", "median_us") }
        $1 == "gups" && $2 ~ /^direct/ { say("gups", "GUPS") }
        $1 == "gups" && $2 !~ /^direct/ { say("gups-messages", "GUPS") }'
}

# over_mpi LAUNCHER OPTION... PROGRAM: the same points over MPI.
over_mpi() {
    bounded "$@" "$budget" "$first" "$second" $sizes
}
openmpi() {
    over_mpi "$openmpi_run" --allow-run-as-root --oversubscribe --bind-to none -n 2 "$work/openmpi"
}
mpich() { over_mpi "$mpich_run" -n 2 "$work/mpich"; }
portals() {
    LD_LIBRARY_PATH="$PORTALS_OPENMPI/lib:$prefix/lib:${LD_LIBRARY_PATH:-}" over_mpi \
        "$PORTALS_OPENMPI/bin/mpirun" --allow-run-as-root --oversubscribe --bind-to none \
        --mca pml cm --mca mtl portals4 -n 2 "$work/portals"
}

# as_pair SERVER CLIENT: two commands, the second one again until the first one listens.
as_pair() {
    port=$((port + 1))
    PORT=$port timeout -k 5 "$limit" sh -c "exec $1" >/dev/null 2>&1 &
    server=$!
    tries=0
    until PORT=$port timeout -k 5 "$limit" sh -c "exec $2" 2>"$work/error"; do
        tries=$((tries + 1))
        if [ $tries -ge 100 ] || ! kill -0 "$server" 2>/dev/null; then
            note "failed: $2"
            tail -n 3 "$work/error" >&2
            break
        fi
        sleep 0.1
    done >"$work/pair"
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
    cat "$work/pair"
}

# repetitions BYTES: those of about 50 ms on a quiet machine, since these programs have no
# limit of time.
repetitions() {
    if [ "$1" -lt 4096 ]; then echo 50000
    elif [ "$1" -lt 65536 ]; then echo 20000
    elif [ "$1" -lt 1048576 ]; then echo 5000
    else echo 300; fi
}

ucx() { bounded "$work/$1" "$budget" "$first" "$second" $sizes; }
ucx_tag() { ucx ucx_tag; }
ucx_am() { ucx ucx_am; }
ucx_put() { ucx ucx_put; }

libfabric() {
    for bytes in $sizes; do
        common="$fi_pingpong -p shm -e rdm -m tagged -S $bytes -I $(repetitions "$bytes")"
        as_pair "taskset -c $second $common -B \$PORT" "taskset -c $first $common -P \$PORT 127.0.0.1" |
            awk -v bytes="$bytes" '$1 ~ /^[0-9]/ { print "latency", bytes, $7 }'
    done
}

# --- which columns there are ----------------------------------------------------------------

columns="lintel ucx_tag ucx_am ucx_put openmpi mpich libfabric"
missing=
lacks() { missing="$missing $1"; }
version() { printf '%s\t%s\n' "$1" "$2" >>"$work/versions"; }
: >"$work/versions"

# build COLUMN COMPILER LAUNCHER: compiles the MPI program; the launcher's path is $run.
build() {
    run=
    is_here "$2" || return 1
    run=$(dirname "$(command -v "$2")")/$3
    is_here "$run" || return 1
    if ! "$2" -O2 "$here/mpi.c" -o "$work/$1" 2>"$work/error"; then
        note "$2 can't compile mpi.c"
        tail -n 5 "$work/error" >&2
        return 1
    fi
}

"$prefix/bin/lintel" --version >"$work/version" || { note "$prefix/bin/lintel doesn't run"; exit 1; }
version Lintel "$(cut -d' ' -f2 "$work/version")"
# build_ucx COLUMN KIND: compiles the program for one kind of messages.
build_ucx() {
    set -- "$1" "-DKIND=$2" "$here/messages_ucx.c" -o "$work/$1"
    column=$1
    shift
    [ -z "$ucx_prefix" ] || set -- "$@" -I"$ucx_prefix/include" -L"$ucx_prefix/lib" -Wl,-rpath,"$ucx_prefix/lib"
    "${CC:-cc}" -std=gnu11 -O2 "$@" -lucp -lucs 2>"$work/error" && return
    note "can't compile messages_ucx.c: without libucx-dev?"
    tail -n 3 "$work/error" >&2
    lacks "$column"
}
build_ucx ucx_tag TAG
build_ucx ucx_am ACTIVE
build_ucx ucx_put PUT
if [ -x "$work/ucx_tag" ]; then
    ucx_info=${ucx_prefix:+$ucx_prefix/bin/}ucx_info
    version UCX "$("$ucx_info" -v 2>/dev/null | awk '/ersion/ { print $NF; exit }')"
fi
# Debian's launchers have a suffix; another build has its own beside the compiler.
openmpi_suffix=.openmpi
mpich_suffix=.mpich
[ -z "$openmpi_cc" ] || openmpi_suffix=
[ -z "$mpich_cc" ] || mpich_suffix=
if build openmpi "${openmpi_cc:-mpicc.openmpi}" "mpiexec$openmpi_suffix"; then
    openmpi_run=$run
    version "Open MPI" "$("$run" --version | awk 'NR == 1 { print $NF }')"
else
    lacks openmpi
fi
if build mpich "${mpich_cc:-mpicc.mpich}" "mpiexec$mpich_suffix"; then
    mpich_run=$run
    version MPICH "$("$run" --version | awk '$1 == "Version:" { print $2 }')"
else
    lacks mpich
fi
if [ -n "${USED:-}" ]; then
    export USED
    columns=${columns% libfabric}
elif is_here "$fi_pingpong"; then
    version libfabric "$(fi_info --version 2>/dev/null | awk '/^libfabric:/ { print $2 }')"
else
    lacks libfabric
fi
if [ -n "${PORTALS_OPENMPI:-}" ]; then
    columns="$columns portals"
    build portals "$PORTALS_OPENMPI/bin/mpicc" mpirun || lacks portals
fi

# --- turns ----------------------------------------------------------------------------------

for round in $(seq "$rounds"); do
    for column in $columns; do
        case " $missing " in *" $column "*) continue ;; esac
        note "round $round of $rounds: $column"
        "$column" | sed "s/^/$column /" >>"$work/all"
    done
done

# --- the table ------------------------------------------------------------------------------

processor=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
echo "${processor:-unknown processor}, Linux $(uname -r), cores $cores, $(date -u +%Y-%m-%d);" \
    "$(awk -F '\t' '{ printf "%s%s %s", sep, $1, $2; sep = ", " }' "$work/versions");" \
    "medians of $rounds turns; load before the last one $(cut -d' ' -f1 /proc/loadavg)"
echo
awk -v columns="$columns" -v missing="$missing" -v sizes="$sizes" '
function median(key,    n, i, j, t, v) {
    n = split(values[key], v, " ")
    if (n == 0) return ""
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && v[j] + 0 < v[j - 1] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
    return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}
function size(bytes) {
    if (bytes >= 1048576 && bytes % 1048576 == 0) return bytes / 1048576 " MiB"
    if (bytes >= 1024 && bytes % 1024 == 0) return bytes / 1024 " KiB"
    return bytes " B"
}
function shown(value) {
    if (value == "") return "–"
    if (value >= 100) return sprintf("%.0f", value)
    if (value >= 10) return sprintf("%.1f", value)
    return sprintf(value > 0 && value < 0.1 ? "%.4f" : "%.2f", value)
}
function row(label, measure, bytes,    c, cell) {
    printf "| %s |", label
    for (c = 1; c <= n; c++) {
        cell = shown(median(column[c] " " measure " " bytes))
        printf " %s |", index(" " missing " ", " " column[c] " ") ? "not installed" : cell
    }
    print ""
}
$4 != "" { key = $1 " " $2 " " $3; values[key] = values[key] " " $4 }
END {
    title["lintel"] = "Lintel"; title["ucx_tag"] = "UCX tag"; title["ucx_am"] = "UCX active message"
    title["ucx_put"] = "UCX put"; title["openmpi"] = "Open MPI"; title["mpich"] = "MPICH"
    title["libfabric"] = "libfabric shm, tagged"; title["portals"] = "Open MPI, mtl/portals4"
    n = split(columns, column, " ")
    printf "| measure |"
    for (c = 1; c <= n; c++) printf " %s |", title[column[c]]
    printf "\n|---|"
    for (c = 1; c <= n; c++) printf "---|"
    print ""
    many = split(sizes, bytes, " ")
    for (i = 1; i <= many; i++) row(size(bytes[i]) " half round trip, µs", "latency", bytes[i])
    for (i = 1; i <= many; i++)
        if (bytes[i] >= 1024) row(size(bytes[i]) " stream, GB/s", "bandwidth", bytes[i])
    row("8 B messages, 10^6/s", "rate", 8)
    row("the same, counted at the target", "rate-counted", 8)
    for (i = 65536; i <= 4194304; i *= 64) {
        row(size(i) " overlap, origin computing, %", "overlap-origin", i)
        row(size(i) " overlap, target computing, %", "overlap-target", i)
    }
    row("8 B put, target computing, delivered, µs", "delivered", 8)
    row("8 B put, target computing, acknowledged, µs", "acknowledged", 8)
    row("RandomAccess, GUPS", "gups", 8)
    row("the same by messages", "gups-messages", 8)
}' "$work/all"
