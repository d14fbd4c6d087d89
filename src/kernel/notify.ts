/**
 * Notify: how a service tells its supervisor about itself (sd_notify): datagrams to a unix socket, which Node has no words
 * for. A message that cannot be sent is nobody's concern but the one's who waits for it.
 */
import { AF_UNIX, SOCK_DGRAM, closeQuietly, sendTo, socket } from "./libc.ts";

const FAMILY_BYTES = 2;
/** The kernel's limit. */
const PATH_BYTES_MAX = 108;

export class NotifySocket {
  readonly #fd: number;
  readonly #address: Buffer;

  /** A path, or a name that begins with "@" and exists in no file system. Throws where it is neither. */
  constructor(name: string) {
    this.#address = unixAddress(name);
    this.#fd = socket(AF_UNIX, SOCK_DGRAM);
  }

  /** Whether it was taken. */
  send(text: string): boolean {
    return sendTo(this.#fd, Buffer.from(text), this.#address) >= 0;
  }

  close(): void {
    closeQuietly(this.#fd);
  }
}

function unixAddress(name: string): Buffer {
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
