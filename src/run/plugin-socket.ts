/**
 * PluginSocket: the socket by which docker tells its plugins to end. Its name is abstract, and Node 20 cannot connect to such a name.
 */
import { AF_UNIX, SOCK_STREAM, connectTo, socket } from "../kernel/libc.ts";
import { unixAddress } from "../kernel/unix-listener.ts";

/** Returns a descriptor that is connected. */
export function connectPluginSocket(name: string): number {
  const fd = socket(AF_UNIX, SOCK_STREAM);
  connectTo(fd, unixAddress(name), name);
  return fd;
}
