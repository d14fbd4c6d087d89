// OPT records of a query, alone or with another record.

import { hex, opt, option, padding, u16, wireName } from "../octets.ts";

const ECS = hex("0001 18 00 c00002");

export const OPTS: Readonly<Record<string, readonly Buffer[]>> = {
  none: [],
  "512": [opt({ size: 512 })],
  "1232": [opt({ size: 1232 })],
  "4096": [opt({ size: 4096 })],
  "65535": [opt({ size: 65535 })],
  "0": [opt({ size: 0 })],
  "511": [opt({ size: 511 })],
  do: [opt({ isDnssecOk: true })],
  z: [opt({ z: 0x7fff })],
  "version 1": [opt({ version: 1 })],
  "version 255": [opt({ version: 255 })],
  "rcode 1": [opt({ rcode: 1 })],
  "rcode 255": [opt({ rcode: 255 })],
  cookie: [opt({ options: [option(10, Buffer.alloc(8, 1))] })],
  "short cookie": [opt({ options: [option(10, Buffer.alloc(3, 1))] })],
  subnet: [opt({ options: [option(8, ECS)] })],
  many: [opt({ options: [option(3), option(8, ECS), option(10, Buffer.alloc(8, 1)), option(11), padding(20)] })],
  padding: [opt({ options: [padding(128)] })],
  local: [opt({ options: [option(65001, Buffer.from("x"))] })],
  two: [opt({ size: 600 }), opt({ size: 4096, isDnssecOk: true })],
  "two, small last": [opt({ size: 4096 }), opt({ size: 512, rcode: 3 })],
  "with an address": [opt({ size: 4096 }), Buffer.concat([hex("00 0001 0001 00000000 0004 01020304")])],
  "behind an address": [Buffer.concat([hex("00 0001 0001 00000000 0004 01020304")]), opt({ size: 4096 })],
  named: [opt({ owner: wireName("opt.test") })],
  "named by a pointer": [opt({ owner: hex("c00c") })],
  "option cut": [opt({ options: [option(10, Buffer.alloc(3), 8)] })],
  "option header cut": [opt({ options: [hex("000a 00")] })],
  "subnet of family 3": [opt({ options: [option(8, hex("0003 18 00 c00002"))] })],
  "subnet too long": [opt({ options: [option(8, hex("0001 21 00 c0000201"))] })],
  "subnet of no family": [opt({ options: [option(8, hex("0000 00 00"))] })],
  "subnet of no family with bits": [opt({ options: [option(8, hex("0000 08 00 01"))] })],
  "subnet of 3": [opt({ options: [option(8, hex("000118"))] })],
  "keepalive of 1": [opt({ options: [option(11, hex("00"))] })],
  "keepalive of 2": [opt({ options: [option(11, u16(100))] })],
  "keepalive of 4": [opt({ options: [option(11, u16(100, 100))] })],
  "expire of 2": [opt({ options: [option(9, u16(1))] })],
  "expire of 4": [opt({ options: [option(9, u16(1, 1))] })],
  "error of 1": [opt({ options: [option(15, hex("00"))] })],
  "error of 0": [opt({ options: [option(15)] })],
  "lease of 4": [opt({ options: [option(2, u16(0, 60))] })],
  "lease of 5": [opt({ options: [option(2, Buffer.alloc(5))] })],
  "llq of 18": [opt({ options: [option(1, Buffer.alloc(18, 1))] })],
  "llq of 17": [opt({ options: [option(1, Buffer.alloc(17))] })],
  dau: [opt({ options: [option(5, hex("080d")), option(6, hex("01")), option(7)] })],
  chain: [opt({ options: [option(13, wireName("test"))] })],
  report: [opt({ options: [option(18, wireName("agent.test"))] })],
  "report cut": [opt({ options: [option(18, hex("0561"))] })],
  "zone version": [opt({ options: [option(19, hex("010000000001"))] })],
  "length too long": [opt({ length: 4 })],
};

const OPTIONS: Readonly<Record<number, Buffer>> = {
  1: Buffer.alloc(18, 1),
  2: u16(0, 60),
  8: ECS,
  9: u16(1, 1),
  10: Buffer.alloc(8, 1),
  11: u16(100),
  15: u16(22),
  18: wireName("agent.test"),
  19: hex("010000000001"),
};
const UNKNOWN = [26_946, 65_001, 65_535];

// Every option as it should be, with nothing, with one octet, with one too many, and with an octet less than its length says.
export function everyOption(): Readonly<Record<string, readonly Buffer[]>> {
  const codes = [...Array.from({ length: 25 }, (_, code) => code), ...UNKNOWN];
  return Object.fromEntries(
    codes.flatMap((code) => {
      const data = OPTIONS[code] ?? hex("0102030405");
      const forms = {
        whole: option(code, data),
        empty: option(code),
        "of one octet": option(code, hex("01")),
        longer: option(code, Buffer.concat([data, hex("01")])),
        cut: option(code, data, data.length + 1),
      };
      return Object.entries(forms).map(([form, octets]) => [`option ${code} ${form}`, [opt({ options: [octets] })]]);
    }),
  );
}

// Valid to parse, but not in the form in which a resolver would write them again.
export const ODD_OPTS: Readonly<Record<string, readonly Buffer[]>> = {
  "subnet with spare bits": [opt({ options: [option(8, hex("0001 08 00 c00002ff"))] })],
  "subnet with few octets": [opt({ options: [option(8, hex("0001 20 00 c0"))] })],
  "subnet with more octets": [opt({ options: [option(8, hex("0001 08 00 c0000201ff"))] })],
  "expire of 6": [opt({ options: [option(9, u16(1, 1, 1))] })],
  "lease of 8": [opt({ options: [option(2, u16(0, 60, 0, 60))] })],
  "llq of 20": [opt({ options: [option(1, Buffer.alloc(20, 2))] })],
};
