// Writes DNS messages octet by octet, including invalid ones. The library that the rest of the rig uses writes only valid
// messages.

export const TYPE = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  NULL: 10,
  PTR: 12,
  HINFO: 13,
  MX: 15,
  TXT: 16,
  RP: 17,
  SIG: 24,
  AAAA: 28,
  LOC: 29,
  SRV: 33,
  NAPTR: 35,
  CERT: 37,
  DNAME: 39,
  OPT: 41,
  APL: 42,
  DS: 43,
  SSHFP: 44,
  RRSIG: 46,
  NSEC: 47,
  DNSKEY: 48,
  NSEC3: 50,
  NSEC3PARAM: 51,
  TLSA: 52,
  CSYNC: 62,
  ZONEMD: 63,
  SVCB: 64,
  HTTPS: 65,
  EUI48: 108,
  TKEY: 249,
  TSIG: 250,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
  URI: 256,
  CAA: 257,
  PRIVATE: 65280,
} as const;

export const CLASS = { IN: 1, CH: 3, HS: 4, NONE: 254, ANY: 255 } as const;

// Bits of the second 16-bit word of the header.
export const FLAG = { QR: 0x8000, AA: 0x400, TC: 0x200, RD: 0x100, RA: 0x80, Z: 0x40, AD: 0x20, CD: 0x10 } as const;

export function u16(...values: readonly number[]): Buffer {
  const octets = Buffer.alloc(values.length * 2);
  for (const [index, value] of values.entries()) octets.writeUInt16BE(value & 0xffff, index * 2);
  return octets;
}

export function u32(value: number): Buffer {
  const octets = Buffer.alloc(4);
  octets.writeUInt32BE(value >>> 0);
  return octets;
}

export function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(/\s/g, ""), "hex");
}

// Length-prefixed labels and the root's zero octet. Dots separate labels; \DDD is the octet with that number, and a backslash
// escapes any other character. The last dot may be omitted. There is no limit on lengths.
export function wireName(text: string): Buffer {
  const labels: number[][] = [[]];
  const octets = Buffer.from(text, "utf8");
  for (let at = 0; at < octets.length; at++) {
    const octet = octets[at] ?? 0;
    if (octet === 0x2e) {
      labels.push([]);
    } else if (octet === 0x5c) {
      const number = /^\d{3}/.exec(octets.toString("latin1", at + 1, at + 4))?.[0];
      labels.at(-1)?.push(number === undefined ? (octets[at + 1] ?? 0) : Number(number));
      at += number?.length ?? 1;
    } else {
      labels.at(-1)?.push(octet);
    }
  }
  return Buffer.concat([...labels.filter((label) => label.length > 0).map((label) => label_(label)), Buffer.of(0)]);
}

export function pointerTo(offset: number): Buffer {
  return u16(0xc000 | offset);
}

export type RecordParts = {
  // Octets, or a name for wireName; default: the root.
  readonly owner?: string | Buffer;
  readonly type: number;
  readonly class?: number;
  readonly ttl?: number;
  readonly data?: Buffer;
  // The length field, if it must differ from the length of the data.
  readonly length?: number;
};

export function record({ owner = ".", type, class: class_ = 1, ttl = 60, data, length }: RecordParts): Buffer {
  const octets = data ?? Buffer.alloc(0);
  const name = typeof owner === "string" ? wireName(owner) : owner;
  return Buffer.concat([name, u16(type, class_), u32(ttl), u16(length ?? octets.length), octets]);
}

export type OptParts = {
  readonly size?: number;
  readonly isDnssecOk?: boolean;
  readonly version?: number;
  readonly rcode?: number;
  readonly z?: number;
  readonly options?: readonly Buffer[];
  readonly owner?: Buffer;
  readonly length?: number;
};

export function opt({
  size = 1232,
  isDnssecOk = false,
  version = 0,
  rcode = 0,
  z = 0,
  ...rest
}: OptParts = {}): Buffer {
  const ttl = rcode * 0x1000000 + version * 0x10000 + (isDnssecOk ? 0x8000 : 0) + z;
  const { owner = ".", length } = rest;
  const data = Buffer.concat(rest.options ?? []);
  return record({ owner, type: TYPE.OPT, class: size, ttl, data, ...(length !== undefined && { length }) });
}

export function option(code: number, data: Buffer = Buffer.alloc(0), length = data.length): Buffer {
  return Buffer.concat([u16(code, length), data]);
}

export function padding(length: number): Buffer {
  return option(12, Buffer.alloc(length));
}

// Length-prefixed character strings.
export function strings(...texts: readonly string[]): Buffer {
  return Buffer.concat(texts.map((text) => Buffer.concat([Buffer.of(text.length), Buffer.from(text, "latin1")])));
}

// The TSIG record of a signed message, with an unknown key.
export const SIGNATURE: Buffer = record({
  owner: "key.test",
  type: TYPE.TSIG,
  class: CLASS.ANY,
  ttl: 0,
  data: Buffer.concat([
    wireName("hmac-sha256"),
    hex("0000 6a000000 012c 0020"),
    Buffer.alloc(32),
    hex("0000 0000 0000"),
  ]),
});

function label_(octets: readonly number[]): Buffer {
  return Buffer.from([octets.length, ...octets]);
}
