/** A line of a file such as /etc/hosts up to its comment. An expression would be tried at each "#" of a line that a container wrote. */
export function withoutComment(line: string): string {
  const at = line.indexOf("#");
  return at < 0 ? line : line.slice(0, at);
}
