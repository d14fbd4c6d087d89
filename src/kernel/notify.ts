/**
 * NotifySocket: reports the service state to its supervisor (sd_notify): datagrams to a unix socket, which Node does
 * not support. A message that cannot be sent matters only to the supervisor.
 */
import { AF_UNIX, SOCK_DGRAM, closeQuietly, sendTo, socket } from "./libc.ts";
import { unixAddress } from "./unix-address.ts";

export class NotifySocket {
  readonly #fd: number;
  readonly #address: Buffer;

  /** A path, or an abstract name that begins with "@". Throws if it is neither. */
  constructor(name: string) {
    this.#address = unixAddress(name);
    this.#fd = socket(AF_UNIX, SOCK_DGRAM);
  }

  /** Returns whether it was sent. */
  send(text: string): boolean {
    return sendTo(this.#fd, Buffer.from(text), this.#address) >= 0;
  }

  close(): void {
    closeQuietly(this.#fd);
  }
}
