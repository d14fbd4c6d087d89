/**
 * LocalPort: the port that an internet socket sends from.
 */
import { localAddress } from "./libc.ts";

/** Offset in a sockaddr_in and a sockaddr_in6. */
const PORT_AT = 2;

export function localPort(fd: number): number {
  return localAddress(fd).readUInt16BE(PORT_AT);
}
