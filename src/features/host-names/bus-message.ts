/**
 * BusMessage: the bytes of D-Bus messages, as far as dns11 needs them: calls with arguments of a few types, and the
 * header and simple values of what comes back. Little-endian, as every system that dns11 runs on.
 */
import { Fault } from "../../base/lib/fault.ts";

export const BUS_REMEDY = "Restart the system bus (dbus), or use --host-names=capture.";

const BUS_CALL = 1;
export const BUS_RETURN = 2;
export const BUS_ERROR = 3;
export const BUS_SIGNAL = 4;

/** A call must not start the service that it is for. */
const NO_AUTO_START = 0x2;
const LITTLE_ENDIAN = 0x6c;
const BIG_ENDIAN = 0x42;
const VERSION = 1;
const FIXED_BYTES = 16;
const STRUCT_BYTES = 8;
/** systemd-resolved never says as much about its links. */
export const READ_BYTES_MAX = 1024 * 1024;
/** Of the names in a header. Ours have some 200; every user of the bus can send as many fields as fit. */
const HEADER_BYTES_MAX = 8 * 1024;
const HEADER_LENGTH_AT = 12;
const FIELD = {
  path: 1,
  interface: 2,
  member: 3,
  error: 4,
  replySerial: 5,
  destination: 6,
  sender: 7,
  signature: 8,
} as const;

export class BusWriter {
  readonly #bytes: number[] = [];

  get bytes(): Buffer {
    return Buffer.from(this.#bytes);
  }

  align(size: number): void {
    while (this.#bytes.length % size !== 0) this.#bytes.push(0);
  }

  byte(value: number): void {
    this.#bytes.push(value & 0xff);
  }

  u32(value: number): void {
    this.align(4);
    this.#bytes.push(value & 0xff, (value >>> 8) & 0xff, (value >>> 16) & 0xff, (value >>> 24) & 0xff);
  }

  boolean(value: boolean): void {
    this.u32(value ? 1 : 0);
  }

  string(text: string): void {
    const bytes = Buffer.from(text);
    this.u32(bytes.length);
    this.#bytes.push(...bytes, 0);
  }

  signature(text: string): void {
    this.#bytes.push(text.length, ...Buffer.from(text), 0);
  }

  /** An array of bytes. */
  data(bytes: Uint8Array): void {
    this.u32(bytes.length);
    this.#bytes.push(...bytes);
  }

  /** An array of structs. */
  structs<T>(items: Iterable<T>, write: (item: T) => void): void {
    this.u32(0);
    const lengthAt = this.#bytes.length - 4;
    this.align(STRUCT_BYTES);
    const start = this.#bytes.length;
    for (const item of items) {
      this.align(STRUCT_BYTES);
      write(item);
    }
    const length = this.#bytes.length - start;
    for (let index = 0; index < 4; index++) this.#bytes[lengthAt + index] = (length >>> (index * 8)) & 0xff;
  }
}

/** Reads values in order; one that is not there is a RangeError. */
export class BusReader {
  readonly #bytes: Buffer;
  #at: number;

  constructor(bytes: Buffer, at = 0) {
    this.#bytes = bytes;
    this.#at = at;
  }

  align(size: number): void {
    this.#at = Math.ceil(this.#at / size) * size;
  }

  byte(): number {
    return this.#bytes.readUInt8(this.#at++);
  }

  u32(): number {
    this.align(4);
    const value = this.#bytes.readUInt32LE(this.#at);
    this.#at += 4;
    return value;
  }

  boolean(): boolean {
    return this.u32() !== 0;
  }

  string(): string {
    return this.#text(this.u32());
  }

  signature(): string {
    return this.#text(this.byte());
  }

  /** An array of structs. */
  structs<T>(read: () => T): T[] {
    const length = this.u32();
    this.align(STRUCT_BYTES);
    const end = this.#at + length;
    const items: T[] = [];
    while (this.#at < end) {
      this.align(STRUCT_BYTES);
      items.push(read());
    }
    return items;
  }

  #text(length: number): string {
    const start = this.#at;
    this.#at += length + 1;
    if (this.#at > this.#bytes.length) throw new RangeError("the text ends after the message");
    return this.#bytes.toString("utf8", start, start + length);
  }
}

/** A method of an object, and its arguments. */
export interface BusCall {
  readonly destination: string;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  readonly signature?: string;
  readonly write?: (body: BusWriter) => void;
}

export function callBytes(call: BusCall, serial: number): Buffer {
  const body = new BusWriter();
  call.write?.(body);
  const content = body.bytes;
  const header = new BusWriter();
  for (const byte of [LITTLE_ENDIAN, BUS_CALL, NO_AUTO_START, VERSION]) header.byte(byte);
  header.u32(content.length);
  header.u32(serial);
  const fields: [number, string, string][] = [
    [FIELD.path, "o", call.path],
    [FIELD.interface, "s", call.interface],
    [FIELD.member, "s", call.member],
    [FIELD.destination, "s", call.destination],
  ];
  if (call.signature !== undefined) fields.push([FIELD.signature, "g", call.signature]);
  header.structs(fields, ([code, type, text]) => {
    header.byte(code);
    header.signature(type);
    if (type === "g") header.signature(text);
    else header.string(text);
  });
  header.align(STRUCT_BYTES);
  return Buffer.concat([header.bytes, content]);
}

export interface BusMessage {
  readonly type: number;
  /** The call that it answers; 0 for none. */
  readonly replySerial: number;
  readonly member: string;
  /** Set by the bus. */
  readonly sender: string;
  /** The name of the error; empty for none. */
  readonly error: string;
  readonly body: BusReader;
}

/** The length of the message that begins here; undefined if more bytes are needed to know. */
export function messageLength(bytes: Buffer): number | undefined {
  if (bytes.length < FIXED_BYTES) return undefined;
  if (bytes[0] !== LITTLE_ENDIAN && bytes[0] !== BIG_ENDIAN) throw malformed();
  const numberAt = (at: number): number => (bytes[0] === BIG_ENDIAN ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at));
  return FIXED_BYTES + Math.ceil(numberAt(HEADER_LENGTH_AT) / STRUCT_BYTES) * STRUCT_BYTES + numberAt(4);
}

/** Whether nobody asked for the message that begins here. Every user of the bus can send such ones, and they may be anything. */
export function isUnasked(bytes: Buffer): boolean {
  return bytes[1] !== BUS_RETURN && bytes[1] !== BUS_ERROR;
}

/** Reads one whole message; what is not one is a Fault. */
export function readMessage(bytes: Buffer): BusMessage {
  if (bytes[0] !== LITTLE_ENDIAN) throw malformed();
  try {
    if (bytes.readUInt32LE(HEADER_LENGTH_AT) > HEADER_BYTES_MAX) throw malformed();
    const body = new BusReader(bytes, FIXED_BYTES - 4);
    const fields = new Map(body.structs(() => [body.byte(), fieldOf(body)] as const));
    body.align(STRUCT_BYTES);
    return {
      type: bytes[1] as number,
      replySerial: Number(fields.get(FIELD.replySerial) ?? 0),
      member: String(fields.get(FIELD.member) ?? ""),
      sender: String(fields.get(FIELD.sender) ?? ""),
      error: String(fields.get(FIELD.error) ?? ""),
      body,
    };
  } catch (error) {
    throw error instanceof RangeError ? malformed() : error;
  }
}

/** The value of a header field: a text or a number. */
function fieldOf(reader: BusReader): string | number {
  const type = reader.signature();
  if (type === "u") return reader.u32();
  if (type === "g") return reader.signature();
  if (type === "s" || type === "o") return reader.string();
  throw malformed();
}

export function malformed(): Fault {
  return new Fault("BUS", "The system bus sent a message that cannot be read", { remedy: BUS_REMEDY });
}
