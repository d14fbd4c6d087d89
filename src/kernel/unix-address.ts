/**
 * The sockaddr_un of a unix socket.
 */
import { Fault } from "../base/lib/fault.ts";
import { AF_UNIX } from "./libc.ts";

const FAMILY_BYTES = 2;
/** The kernel's limit. */
const PATH_BYTES_MAX = 108;

/** Takes a path, or an abstract name that begins with "@". Throws if it is neither. */
export function unixAddress(name: string): Buffer {
  const bytes = Buffer.from(name);
  const isAbstract = name.startsWith("@");
  if ((!isAbstract && !name.startsWith("/")) || bytes.length < 2 || bytes.length >= PATH_BYTES_MAX) {
    throw new Fault("BAD_SOCKET", `Invalid socket name "${name}"`, {
      remedy: "Use an absolute path of less than 108 bytes, or an abstract name such as @name.",
    });
  }
  // A path ends with a zero; an abstract name with its last byte.
  const address = Buffer.alloc(FAMILY_BYTES + bytes.length + (isAbstract ? 0 : 1));
  address.writeUInt16LE(AF_UNIX, 0);
  bytes.copy(address, FAMILY_BYTES);
  if (isAbstract) address[FAMILY_BYTES] = 0;
  return address;
}
