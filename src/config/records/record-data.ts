/**
 * RecordData: reads names of records, and their data as in a zone file, into wire format. A reader throws an Error that says
 * what to use.
 */
import { wireLabels } from "../../base/dns/name.ts";
import { mailData, serviceData, textData } from "../../base/dns/record-data.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { addressBytes } from "../../base/model/address.ts";
import { normalName, problemOf } from "../../base/model/extra-name.ts";
import { quoteValue } from "../kinds.ts";

interface RecordKind {
  readonly type: number;
  readonly read: (text: string) => Uint8Array;
}

/** By the key in the settings file. */
export const RECORD_KINDS = {
  a: { type: TYPE.A, read: (text) => readAddress(text, 4) },
  aaaa: { type: TYPE.AAAA, read: (text) => readAddress(text, 16) },
  txt: { type: TYPE.TXT, read: readText },
  srv: { type: TYPE.SRV, read: readService },
  mx: { type: TYPE.MX, read: readMailServer },
  ptr: { type: TYPE.PTR, read: readTarget },
  caa: { type: TYPE.CAA, read: readAuthority },
} as const satisfies Record<string, RecordKind>;

export type RecordKey = keyof typeof RECORD_KINDS;

const NUMBER_MAX = 65_535;
const FLAGS_MAX = 255;
/** Far more than a record needs that fits into one UDP packet. */
const TEXT_BYTES_MAX = 4096;

/** An address of either family, with its type. */
export function readAnyAddress(text: string): { readonly type: number; readonly data: Uint8Array } {
  const data = text.includes("%") ? undefined : addressBytes(text);
  if (data === undefined) {
    throw new Error(`invalid address ${quoteValue(text)}: use an IP address, or a map such as {cname: db.shop.test}`);
  }
  return { type: data.length === 4 ? TYPE.A : TYPE.AAAA, data };
}

function readAddress(text: string, bytes: 4 | 16): Uint8Array {
  const address = text.includes("%") ? undefined : addressBytes(text);
  if (address?.length === bytes) return address;
  const example = bytes === 4 ? "an IPv4 address, such as 10.0.0.5" : "an IPv6 address, such as fd00::5";
  throw new Error(`invalid address ${quoteValue(text)}: use ${example}`);
}

/** One record; a long text becomes several strings, which readers concatenate. */
function readText(text: string): Uint8Array {
  const bytes = Buffer.from(text);
  if (bytes.length > TEXT_BYTES_MAX) {
    throw new Error(`the text is too long (${bytes.length} bytes): use at most ${TEXT_BYTES_MAX}`);
  }
  return textData(bytes);
}

function readService(text: string): Uint8Array {
  const [priority, weight, port, target, ...rest] = text.split(/\s+/);
  const numbers = [priority, weight, port].map((each) => numberIn(each, NUMBER_MAX));
  if (target === undefined || rest.length > 0 || !numbers.every((each) => each !== undefined)) {
    throw new Error(
      `invalid SRV ${quoteValue(text)}: use "PRIORITY WEIGHT PORT TARGET", such as "0 5 5432 db.shop.test"`,
    );
  }
  const [first = 0, second = 0, third = 0] = numbers;
  return serviceData({ priority: first, weight: second, port: third, target: readTarget(target) });
}

function readMailServer(text: string): Uint8Array {
  const [preference, target, ...rest] = text.split(/\s+/);
  const number = numberIn(preference, NUMBER_MAX);
  if (number === undefined || target === undefined || rest.length > 0) {
    throw new Error(`invalid MX ${quoteValue(text)}: use "PREFERENCE HOST", such as "10 mail.shop.test"`);
  }
  return mailData(number, readTarget(target));
}

function readAuthority(text: string): Uint8Array {
  const [, flags, tag, quoted, plain] = /^(\d{1,3})\s+([a-z0-9]{1,15})\s+(?:"([^"]*)"|([^"\s]+))$/i.exec(text) ?? [];
  const number = numberIn(flags, FLAGS_MAX);
  if (number === undefined || tag === undefined) {
    throw new Error(`invalid CAA ${quoteValue(text)}: use 'FLAGS TAG VALUE', such as '0 issue "ca.example"'`);
  }
  return Uint8Array.of(number, tag.length, ...Buffer.from(tag.toLowerCase()), ...Buffer.from(quoted ?? plain ?? ""));
}

function numberIn(text: string | undefined, max: number): number | undefined {
  return text !== undefined && /^\d{1,5}$/.test(text) && Number(text) <= max ? Number(text) : undefined;
}

/** A declared name in lower case, without a final dot. Throws an Error with what to use instead. */
export function readOwner(text: string): string {
  const name = normalName(text);
  const problem = problemOf(name);
  if (problem !== undefined) throw new Error(`invalid name ${quoteValue(text)}: ${problem}`);
  return name;
}

/** A name that a record points to: wire labels with the terminating zero. "." is the root. */
export function readTarget(text: string): Uint8Array {
  const labels = text === "." ? new Uint8Array(0) : wireLabels(text.replace(/\.$/, ""));
  if (labels === undefined || addressBytes(text) !== undefined || text.includes("*")) throw invalidName(text);
  return Uint8Array.of(...labels, 0);
}

function invalidName(text: string): Error {
  return new Error(
    `invalid name ${quoteValue(text)}: use labels of at most 63 characters with dots between them, such as db.shop.test`,
  );
}
