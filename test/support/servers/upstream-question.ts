/**
 * What the upstream server of a test noticed about a message. Tests check here what really left dns11, so the parts
 * that a DNS library would normalize (type, class, flags) are read from the octets.
 */
import { decode, type OptAnswer } from "dns-packet";

export type Transport = "udp" | "tcp";

interface UpstreamOpt {
  readonly udpSize: number;
  readonly version: number;
  readonly dnssecOk: boolean;
  readonly options: readonly { readonly code: number; readonly data: string }[];
}

export interface UpstreamQuestion {
  readonly id: number;
  /** Second word of the header: QR, opcode, AA, TC, RD, RA, Z, AD, CD, RCODE. */
  readonly flags: number;
  /** With its letter case, without the trailing dot. */
  readonly name: string;
  readonly type: number;
  readonly class: number;
  readonly opt: UpstreamOpt | undefined;
  readonly transport: Transport;
  /** Source, "address#port". */
  readonly from: string;
  /** The whole message in hexadecimal. */
  readonly message: string;
}

/** Undefined if the message has no readable question. */
export function readQuestion(message: Buffer, transport: Transport, from: string): UpstreamQuestion | undefined {
  const question = questionOctets(message);
  if (question === undefined) return undefined;
  const fixed = question.length - 4;
  return {
    id: message.readUInt16BE(0),
    flags: message.readUInt16BE(2),
    name: nameOf(question.subarray(0, fixed)),
    type: question.readUInt16BE(fixed),
    class: question.readUInt16BE(fixed + 2),
    opt: optOf(message),
    transport,
    from,
    message: message.toString("hex"),
  };
}

export function questionOctets(message: Buffer): Buffer | undefined {
  if (message.length < 12 || message.readUInt16BE(4) !== 1) return undefined;
  let end = 12;
  for (let length = message[end]; length !== 0; length = message[end]) {
    if (length === undefined || length > 63) return undefined;
    end += 1 + length;
  }
  const question = message.subarray(12, end + 5);
  return question.length === end + 5 - 12 ? question : undefined;
}

/** Octets beyond ASCII become one character each. A dot within a label is not escaped; use `message` for that. */
function nameOf(octets: Buffer): string {
  const labels: string[] = [];
  for (let at = 0, length = octets[at] ?? 0; length > 0; at += 1 + length, length = octets[at] ?? 0) {
    labels.push(octets.toString("latin1", at + 1, at + 1 + length));
  }
  return labels.join(".");
}

function optOf(message: Buffer): UpstreamOpt | undefined {
  try {
    const opt = decode(message).additionals?.find((record): record is OptAnswer => record.type === "OPT");
    if (opt === undefined) return undefined;
    return {
      udpSize: opt.udpPayloadSize,
      version: opt.ednsVersion,
      dnssecOk: opt.flag_do,
      options: opt.options.map(({ code, data }) => ({ code, data: data?.toString("hex") ?? "" })),
    };
  } catch {
    return undefined;
  }
}
