/**
 * Netlink framing for the subsystems that dns11 uses directly: messages are a header and nested attributes, padded to
 * four bytes. Writing appends to one growing buffer; reading walks a received buffer without copying.
 */

export const NLM_F_REQUEST = 0x001;
export const NLM_F_ACK = 0x004;
export const NLM_F_EXCL = 0x200;
export const NLM_F_DUMP = 0x300;
export const NLM_F_CREATE = 0x400;
export const NLM_F_APPEND = 0x800;
const NLMSG_ERROR = 2;
const NLMSG_DONE = 3;
const HEADER_BYTES = 16;
const NESTED = 0x8000;

const align = (length: number): number => (length + 3) & ~3;

/** Builds one or more messages for a single send. */
export class NetlinkWriter {
  /** Zeroed, because padding bytes are sent too. Large enough for a whole table. */
  #bytes = Buffer.alloc(8192);
  #length = 0;

  /** Appends a message: its header, then what `body` writes. */
  message(type: number, flags: number, sequence: number, body: () => void): void {
    const start = this.#length;
    this.#grow(HEADER_BYTES);
    body();
    const end = this.#length;
    this.#bytes.writeUInt32LE(end - start, start);
    this.#bytes.writeUInt16LE(type, start + 4);
    this.#bytes.writeUInt16LE(flags, start + 6);
    this.#bytes.writeUInt32LE(sequence, start + 8);
  }

  /** Appends bytes as they are: the fixed part that follows a header. */
  raw(bytes: Uint8Array): void {
    const start = this.#grow(align(bytes.length));
    this.#bytes.set(bytes, start);
  }

  attribute(type: number, value: Uint8Array): void {
    const start = this.#header(type, value.length);
    this.#bytes.set(value, start);
  }

  text(type: number, value: string): void {
    const start = this.#header(type, value.length + 1);
    this.#bytes.write(value, start, "latin1");
  }

  /** A number in network byte order, as nfnetlink requires. */
  u32(type: number, value: number): void {
    const start = this.#header(type, 4);
    this.#bytes.writeUInt32BE(value >>> 0, start);
  }

  u64(type: number, value: number): void {
    const start = this.#header(type, 8);
    this.#bytes.writeBigUInt64BE(BigInt(value), start);
  }

  /** A number in native byte order, as the rest of netlink requires. */
  nativeU32(type: number, value: number): void {
    const start = this.#header(type, 4);
    this.#bytes.writeUInt32LE(value >>> 0, start);
  }

  nested(type: number, body: () => void): void {
    const start = this.#grow(4);
    body();
    this.#bytes.writeUInt16LE(this.#length - start, start);
    this.#bytes.writeUInt16LE(type | NESTED, start + 2);
  }

  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  /**
   * Writes an attribute header and reserves room for the value; returns the value's offset. Replaces the buffer where
   * it has to grow.
   */
  #header(type: number, length: number): number {
    const start = this.#grow(4 + align(length));
    this.#bytes.writeUInt16LE(4 + length, start);
    this.#bytes.writeUInt16LE(type, start + 2);
    return start + 4;
  }

  #grow(by: number): number {
    const start = this.#length;
    if (start + by > this.#bytes.length) {
      const larger = Buffer.alloc(Math.max(this.#bytes.length * 2, start + by));
      this.#bytes.copy(larger);
      this.#bytes = larger;
    }
    this.#length += by;
    return start;
  }
}

/** One received message. */
export interface NetlinkMessage {
  readonly type: number;
  readonly sequence: number;
  /** The port id of the socket that caused it; 0 is the kernel. */
  readonly port: number;
  readonly body: Buffer;
}

/** The messages of one received datagram; truncated ones are left out. */
export function* messagesIn(datagram: Buffer): Generator<NetlinkMessage> {
  let at = 0;
  while (at + HEADER_BYTES <= datagram.length) {
    const length = datagram.readUInt32LE(at);
    if (length < HEADER_BYTES || at + length > datagram.length) return;
    yield {
      type: datagram.readUInt16LE(at + 4),
      sequence: datagram.readUInt32LE(at + 8),
      port: datagram.readUInt32LE(at + 12),
      body: datagram.subarray(at + HEADER_BYTES, at + length),
    };
    at += align(length);
  }
}

/**
 * The outcome of the request that a message answers: an errno (0 for success), the end of a dump, or undefined for
 * neither.
 */
export function outcomeOf(message: NetlinkMessage): { readonly errno: number } | "end" | undefined {
  if (message.type === NLMSG_ERROR) return { errno: -message.body.readInt32LE(0) };
  if (message.type === NLMSG_DONE) return "end";
  return undefined;
}

/** The attributes in `bytes` from `offset`, by type; all, or those `wanted`. Call it on a value for nested attributes. */
export function attributesIn(bytes: Buffer, offset = 0, wanted?: ReadonlySet<number>): Map<number, Buffer> {
  const found = new Map<number, Buffer>();
  for (const [type, value] of attributeList(bytes, offset, wanted)) found.set(type, value);
  return found;
}

/** The attributes as a list, for types that may occur several times. */
export function attributeList(bytes: Buffer, offset = 0, wanted?: ReadonlySet<number>): [number, Buffer][] {
  const list: [number, Buffer][] = [];
  let at = offset;
  while (at + 4 <= bytes.length) {
    const length = bytes.readUInt16LE(at);
    if (length < 4 || at + length > bytes.length) break;
    const type = bytes.readUInt16LE(at + 2) & 0x3fff;
    if (wanted === undefined || wanted.has(type)) list.push([type, bytes.subarray(at + 4, at + length)]);
    at += align(length);
  }
  return list;
}

/** A text attribute without its terminating zero. */
export function textOf(value: Buffer | undefined): string {
  if (value === undefined) return "";
  const end = value.indexOf(0);
  return value.toString("latin1", 0, end === -1 ? value.length : end);
}
