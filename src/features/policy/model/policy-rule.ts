/**
 * PolicyRule: one entry of `allow` or `deny`: a name pattern, an address or a block of addresses, and optionally a port and a
 * protocol, as in `api.example.com:443`, `**.example.com`, `10.0.0.141:22/tcp` or `[2001:db8::/32]:53/udp`.
 */
import { type Pattern, readPattern } from "../../../base/model/name-pattern.ts";
import { type AddressBlock, readAddressBlock } from "../../../base/model/address.ts";

const PROTOCOLS = ["tcp", "udp"] as const;
export type Protocol = (typeof PROTOCOLS)[number];

/** A rule as it is written. Exactly one of `pattern` and `block` is set. */
export interface WrittenRule {
  readonly text: string;
  readonly pattern: Pattern | undefined;
  readonly block: AddressBlock | undefined;
  /** Undefined for all. */
  readonly port: number | undefined;
  readonly protocol: Protocol | undefined;
}

export interface PolicyRule extends WrittenRule {
  readonly line: number;
}

const PORT_MAX = 65_535;

/** Throws an Error that says what to use. */
export function readRule(value: unknown): WrittenRule {
  if (typeof value !== "string")
    throw new Error(`invalid rule ${quoted(value)}: use a text, such as "api.example.com:443" or "**.example.com"`);
  const text = value.trim();
  const { subject, port, protocol } = split(text);
  const block = readAddressBlock(subject);
  if (block !== undefined) return { text, pattern: undefined, block, port, protocol };
  if (subject.includes("/"))
    throw new Error(`invalid rule ${quoted(text)}: use an address block such as 10.0.0.0/8, or a name without a path`);
  return { text, pattern: readPattern(subject), block: undefined, port, protocol };
}

/** Whether a wildcard stands for something in it. */
export function isWildcard({ pattern }: WrittenRule): boolean {
  return pattern !== undefined && pattern.before !== "none";
}

interface Parts {
  readonly subject: string;
  readonly port: number | undefined;
  readonly protocol: Protocol | undefined;
}

/** An IPv6 address with a port is in brackets; without one, its colons are its own. */
function split(text: string): Parts {
  const whole = { subject: text, port: undefined, protocol: undefined };
  const [, bracketed, afterBracket] = /^\[([^\]]*)\](.*)$/s.exec(text) ?? [];
  if (bracketed === undefined && (text.match(/:/g) ?? []).length > 1) return whole;
  const [, plain = "", rest = ""] =
    bracketed === undefined ? (/^([^:]*)(:.*)?$/s.exec(text) ?? []) : ["", bracketed, afterBracket];
  if (rest === "" && bracketed !== undefined) return { ...whole, subject: plain };
  if (rest === "") return whole;
  const [, portText, protocol] = /^:(\d{1,5})(?:\/([a-z]+))?$/.exec(rest) ?? [];
  const port = Number(portText);
  if (portText === undefined || port === 0 || port > PORT_MAX)
    throw new Error(`invalid port in ${quoted(text)}: use one from 1 to ${PORT_MAX}, such as ":443" or ":22/tcp"`);
  const known = PROTOCOLS.find((each) => each === protocol);
  if (protocol !== undefined && known === undefined)
    throw new Error(`invalid protocol in ${quoted(text)}: use ${PROTOCOLS.join(" or ")}`);
  return { subject: plain, port, protocol: known };
}

const SHOWN_MAX = 80;

function quoted(value: unknown): string {
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "(a list)" : "(a map)";
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}...` : text;
}
