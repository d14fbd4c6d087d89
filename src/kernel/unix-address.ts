/**
 * The address of a unix socket, as the kernel reads it.
 */
import { AF_UNIX } from "./libc.ts";

const FAMILY_BYTES = 2;
/** The kernel's limit. */
const PATH_BYTES_MAX = 108;

/** Of a path, or of a name that begins with "@" and exists in no file system. Throws where it is neither. */
export function unixAddress(name: string): Buffer {
  const bytes = Buffer.from(name);
  const isAbstract = name.startsWith("@");
  if ((!isAbstract && !name.startsWith("/")) || bytes.length < 2 || bytes.length >= PATH_BYTES_MAX) {
    throw new Error(`"${name}" is neither a path nor an abstract name of a socket`);
  }
  // The end of a path is marked; a name counts to its last byte.
  const address = Buffer.alloc(FAMILY_BYTES + bytes.length + (isAbstract ? 0 : 1));
  address.writeUInt16LE(AF_UNIX, 0);
  bytes.copy(address, FAMILY_BYTES);
  if (isAbstract) address[FAMILY_BYTES] = 0;
  return address;
}
