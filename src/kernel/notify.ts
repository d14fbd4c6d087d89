/**
 * Notify: how a service tells its supervisor about itself (sd_notify): datagrams to a unix socket, which Node has no words
 * for. A message that cannot be sent is nobody's concern but the one's who waits for it.
 */
import { AF_UNIX, SOCK_DGRAM, closeQuietly, sendTo, socket } from "./libc.ts";
import { unixAddress } from "./unix-address.ts";

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
