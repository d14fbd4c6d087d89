/**
 * Runtime: whether a container's runtime gives it a network stack of its own, as gVisor and Kata Containers do. Its packets are made in
 * there and put on the link: none passes the loopback interface of its namespace, nor any rule there. Users choose the names of
 * runtimes, so that one counts by what its name contains.
 */
const WITH_OWN_STACK = /(?:^|[^a-z])(?:runsc|gvisor|kata)(?:[^a-z]|$)/i;

export function hasOwnStack({ runtime }: { readonly runtime?: string }): boolean {
  return runtime !== undefined && WITH_OWN_STACK.test(runtime);
}
