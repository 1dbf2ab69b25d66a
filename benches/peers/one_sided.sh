#!/bin/sh
# Puts, gets and fetch-adds to memory that the initiator has mapped: Lintel's direct entries beside
# UCX's memory, in turns and on the same two cores. Prints a Markdown table of medians in
# microseconds of one operation until it is complete; README.md in this folder describes it.
#
#   benches/peers/one_sided.sh PREFIX
#
# PREFIX is where `cargo xtask dist --prefix PREFIX` has installed Lintel. Variables:
#   CORES (0,1)         one for each process
#   SIZES (8 64 1024 4096 65536 1048576 4194304)
#   ROUNDS (3)          turns that each library gets
#   BUDGET (100)        milliseconds for each point of a turn
#   LIMIT (120)         seconds after which a command is ended; its cells stay empty
#   UCX_PREFIX          where another UCX is installed
set -eu
prefix=${1:?"say where Lintel is installed: one_sided.sh PREFIX"}
here=$(cd "$(dirname "$0")" && pwd)
cores=${CORES:-0,1}
sizes=${SIZES:-8 64 1024 4096 65536 1048576 4194304}
rounds=${ROUNDS:-3}
budget=${BUDGET:-100}
limit=${LIMIT:-120}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
: >"$work/all"

note() { echo "one_sided.sh: $*" >&2; }

# build COLUMN LIBRARY-PREFIX LIBRARY...: compiles one of the programs.
build() {
    column=$1
    from=$2
    shift 2
    set -- "$here/one_sided_$column.c" -o "$work/$column" "$@"
    [ -z "$from" ] || set -- "$@" -I"$from/include" -L"$from/lib" -Wl,-rpath,"$from/lib"
    "${CC:-cc}" -std=gnu11 -O2 "$@" 2>"$work/error" && return
    note "can't compile one_sided_$column.c"
    tail -n 5 "$work/error" >&2
    return 1
}

build portals "$prefix" -lportals
columns=portals
build ucx "${UCX_PREFIX:-}" -lucp -lucs && columns="$columns ucx"

for round in $(seq "$rounds"); do
    for column in $columns; do
        note "round $round of $rounds: $column"
        timeout -k 5 "$limit" "$work/$column" "$budget" "${cores%,*}" "${cores#*,}" $sizes \
            >"$work/turn" || note "failed, or took longer than $limit s: $column"
        sed "s/^/$column /" "$work/turn" >>"$work/all"
    done
done

ucx_info=ucx_info
[ -z "${UCX_PREFIX:-}" ] || ucx_info=$UCX_PREFIX/bin/ucx_info
ucx=$("$ucx_info" -v 2>/dev/null | awk '/ersion/ { print $NF; exit }')
processor=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
echo "${processor:-unknown processor}, Linux $(uname -r), cores $cores, $(date -u +%Y-%m-%d);" \
    "Lintel $("$prefix/bin/lintel" --version | cut -d' ' -f2), UCX ${ucx:-not installed};" \
    "medians of $rounds turns; load before the last one $(cut -d' ' -f1 /proc/loadavg)"
echo
awk -v sizes="$sizes" '
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
    return sprintf(value >= 100 ? "%.0f" : value >= 10 ? "%.1f" : value >= 0.1 ? "%.2f" : "%.4f", value)
}
function row(operation, bytes,    cells, state) {
    cells = ""
    for (state = 1; state <= 2; state++)
        cells = cells " " shown(median("portals " operation "-" states[state] " " bytes)) " |" \
            " " shown(median("ucx " operation "-" states[state] " " bytes)) " |"
    printf "| %s %s |%s %s |\n", size(bytes), operation, cells, shown(median("portals copy " bytes))
}
{ key = $1 " " $2 " " $3; values[key] = values[key] " " $4 }
END {
    split("polling computing", states, " ")
    print "| µs | Lintel, target polling | UCX, target polling | Lintel, target computing | UCX, target computing | a bare copy |"
    print "|---|---|---|---|---|---|"
    many = split(sizes, bytes, " ")
    for (i = 1; i <= many; i++) row("put", bytes[i])
    for (i = 1; i <= many; i++) row("get", bytes[i])
    row("fetch-add", 8)
}' "$work/all"
