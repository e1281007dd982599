#!/bin/sh
# keeper.sh LIFE_DIR LOCK_FILE BINARY COMMAND [ARGUMENT...]
#
# Holds one child: runs COMMAND, outlives whoever started it, and records how the child ended. BINARY is the program
# that COMMAND ends up running (COMMAND may begin with setpriv, prlimit or choom). LIFE_DIR is prepared by the
# supervisor (life-dir.ts): `pid` and `exit` are written blocks already, so that a full disk cannot lose the records.
# Ends with 0 after recording, 95 could not record, 96 life was withdrawn or used, 97 no lock file, 98 no fifo,
# 99 lock is held by another, 127 a tool is missing (flock, mkfifo).
main() { # the whole body is parsed before it runs: replacing this file cannot change a keeper that runs
  set -u
  umask 077
  life=$1 lock=$2 binary=$3
  shift 3
  # Handlers, not "ignore": a handler is put back to the default in the child, an ignored signal would stay ignored.
  trap : HUP INT QUIT TERM USR1 USR2 PIPE ALRM TSTP TTIN TTOU
  cd / || exit 97
  true >>"$lock" || exit 97
  exec 8>>"$lock" # inherited by the child: the lock is held until keeper and child are both gone
  flock -n -E 99 8 || exit
  rm "$life/go" || exit 96 # taken under the lock: no life runs twice, none that was given up runs at all
  [ -p "$life/alive" ] || mkfifo "$life/alive" || exit 98
  exec 7<>"$life/alive" # inherited too: a reader sees the end of file when both are gone
  # In the foreground, since a shell makes background children ignore INT and QUIT. The record stands before the exec.
  (record_pid "$life/pid" "$binary"; unset PWD OLDPWD; exec "$@") </dev/null >>"$life/log" 2>&1
  seal "exit 1 $?"
  echo "$line" >&7 # for an agent that is there, whatever the disk does
  echo "$line" | dd of="$life/exit" conv=notrunc,fsync 2>/dev/null || exit 95
}

# record_pid FILE BINARY: pid, start ticks, boot id and device:inode of the binary (- if not known), in place.
record_pid() {
  file=$1
  inode=$(stat -Lc %d:%i -- "$2" 2>/dev/null) || inode=-
  read -r boot </proc/sys/kernel/random/boot_id
  read -r stat </proc/self/stat
  set -- ${stat##*) } # the fields behind the name
  seal "pid 1 ${stat%% *} ${20} $boot $inode"
  echo "$line" 1<>"$file"
}

# seal TEXT: sets `line` to the text with its checksum and length, newline included.
seal() {
  line="$1 $(cksum <<END
$1
END
  )"
}

main "$@"
