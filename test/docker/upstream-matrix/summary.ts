// The short form of a reply in the rows of the matrix: rcode, flags, the data of the answers, and the types of the other
// records.

import { type RawRecord, readMessage } from "../differential/message.ts";
import { FLAG, TYPE } from "../differential/octets.ts";

const RCODES = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"] as const;
const FLAGS = ["QR", "AA", "TC", "RD", "RA", "AD", "CD"] as const;
const TYPES: ReadonlyMap<number, string> = new Map(Object.entries(TYPE).map(([name, type]) => [type, name]));
const MANY = 9;

// "NOERROR qr rd ra: 192.0.2.1; OPT"
export function summaryOf(octets: Buffer): string {
  const { header, records } = readMessage(octets);
  const word = Number.parseInt(header.slice(0, 4), 16);
  const flags = FLAGS.filter((flag) => (word & FLAG[flag]) !== 0).map((flag) => flag.toLowerCase());
  const answers = records.filter(({ section }) => section === "answer").map(dataOf);
  const others = records
    .filter(({ section }) => section !== "answer")
    .map(({ type }) => TYPES.get(type) ?? `type ${type}`);
  const shown = answers.length > MANY ? [`${answers.length} records`] : answers;
  const head = [RCODES[word & 15] ?? `rcode ${word & 15}`, ...flags].join(" ");
  return head + (shown.length > 0 ? `: ${shown.join(" ")}` : "") + (others.length > 0 ? `; ${others.join(" ")}` : "");
}

function dataOf({ type, data }: RawRecord): string {
  if (type === TYPE.A) return [...Buffer.from(data, "hex")].join(".");
  return type === TYPE.RRSIG ? "RRSIG" : data;
}
