#!/usr/bin/env bash
# Prints a folder in memory for what the tests write, some 2 GB, if there is one with room in which programs may run.
set -eu

FOLDER=/dev/shm
NEEDED_MB=6000

free=$(df -Pm "$FOLDER" 2>/dev/null | awk 'NR == 2 { print $4 }')
available=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo 2>/dev/null || true)
limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || true)
[[ $limit =~ ^[0-9]+$ ]] && limit=$((limit / 1024 / 1024)) || limit=$NEEDED_MB

if [[ -w $FOLDER && ${free:-0} -ge $NEEDED_MB && ${available:-0} -ge $NEEDED_MB && $limit -ge $NEEDED_MB ]] &&
  ! grep -q "^[^ ]* $FOLDER [^ ]* [^ ]*noexec" /proc/mounts; then
  echo "$FOLDER"
fi
