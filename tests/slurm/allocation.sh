#!/bin/sh
# Starts a Slurm of one node from Debian's packages (slurmctld, slurmd, slurm-client, munge) in a folder
# of its own, and checks what yod makes of its allocations. As root:
#
#     cargo xtask slurm
#
# Everything it starts ends with it. YOD and PROGRAM name yod and a program that prints a line for each rank.
set -eu
: "${YOD:?the path of yod}" "${PROGRAM:?the path of a program}"
folder=$(mktemp -d)
node=$(hostname -s)
export SLURM_CONF="$folder/slurm.conf"

finish() {
    for daemon in slurmd slurmctld munged; do
        [ -f "$folder/$daemon.pid" ] || continue
        pid=$(cat "$folder/$daemon.pid")
        kill "$pid" 2>/dev/null || true
        # It writes its state before it ends.
        left=100
        while kill -0 "$pid" 2>/dev/null && [ "$(ps -o stat= -p "$pid" | cut -c1)" != Z ] && [ $left -gt 0 ]; do
            left=$((left - 1))
            sleep 0.1
        done
    done
    rm -rf "$folder"
}
trap finish EXIT INT TERM

mkdir "$folder/state" "$folder/spool"
chmod 755 "$folder"
dd if=/dev/urandom of="$folder/key" bs=32 count=1 2>/dev/null
chmod 400 "$folder/key"
munged --force --key-file="$folder/key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
    --log-file="$folder/munged.log" --seed-file="$folder/seed" 2>/dev/null
cat > "$SLURM_CONF" <<EOF
ClusterName=lab
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
NodeName=$node NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
EOF
slurmctld
slurmd
left=60
until sinfo --noheader --format=%t 2>/dev/null | grep -q idle; do
    left=$((left - 1))
    [ $left -gt 0 ] || { cat "$folder"/*.log; echo "the node isn't ready" >&2; exit 1; }
    sleep 1
done

# expect TITLE CODE LINES COMMAND...: the command ends with this code after so many lines of output.
expect() {
    title=$1 code=$2 lines=$3
    shift 3
    got=0
    timeout 60 "$@" > "$folder/out" 2> "$folder/err" || got=$?
    if [ $got -ne "$code" ] || [ "$(wc -l < "$folder/out")" -ne "$lines" ]; then
        echo "FAILED $title: exit code $got, expected $code; $lines lines expected:" >&2
        cat "$folder/out" "$folder/err" >&2
        exit 1
    fi
    echo "   $title"
}

there="srun --nodes=1 --ntasks=1 --overlap --unbuffered --nodelist={host} sh -c"
expect "salloc: a rank for each task" 0 2 salloc -n 2 "$YOD" "$PROGRAM"
expect "salloc: more ranks than tasks are refused" 2 0 salloc -n 1 "$YOD" -n 2 "$PROGRAM"
expect "salloc: --no-allocation ignores it" 0 2 salloc -n 1 "$YOD" --no-allocation -n 2 "$PROGRAM"
expect "srun: a task of a step starts its own ranks" 0 2 srun -n 1 "$YOD" -n 2 "$PROGRAM"
expect "ranks started through srun" 0 2 salloc -n 2 "$YOD" --hosts "$node=127.0.0.2:2" --launch-agent "$there" "$PROGRAM"
expect "the exit code comes back through srun" 3 0 salloc -n 1 "$YOD" --hosts "$node=127.0.0.2" --launch-agent "$there" sh -c "exit 3"
expect "srun --mpi=pmi2 without yod" 0 2 srun --mpi=pmi2 -n 2 "$PROGRAM"
printf '#!/bin/sh\n"%s" "%s" > "%s" 2>&1\n' "$YOD" "$PROGRAM" "$folder/batch" > "$folder/batch.sh"
expect "sbatch is accepted" 0 0 sbatch --wait --quiet -n 2 -o /dev/null "$folder/batch.sh"
expect "sbatch: a rank for each task" 0 2 cat "$folder/batch"
