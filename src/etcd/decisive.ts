/** @pure file: which lines of etcd's log must outlive everything. */

/** What a decisive line contains: how etcd came to its end, or that it applied its own removal. */
const decisive =
  /^(?:panic:|fatal error:|\[signal |SIG[A-Z]+: )|"level":"(?:fatal|panic|dpanic)"|permanently removed|must be removed|"msg":"removed member"|failed to find local ID|IsLocalMemberLearner|no space left on device|read-only file system|flocked by another process|received signal/;

/** @pure True for a line that the verdict on etcd's end may hang on: it is copied aside at once. */
export function isDecisive(line: string): boolean {
  return decisive.test(line);
}
