/**
 * Daemons: the programs of the machine that speak mDNS, asked over their unix sockets: avahi-daemon with a line of text, and
 * systemd-resolved with a message of varlink, which is JSON and a zero byte. What they reply is not trusted.
 */
import { closeSync } from "node:fs";
import { type Socket, connect } from "node:net";

import { addressBytes, addressText } from "../../base/model/address.ts";
import { codeOf, reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { ReplyBytes } from "../../base/lib/json-lines.ts";
import type { MdnsReport } from "../../api/status.ts";
import { O_PATH, openInRoot } from "../../kernel/libc.ts";
import { MDNS_LIMITS } from "./limits.ts";

export type Family = 4 | 6;

/** An address, and the index of the link on which it was announced. */
export interface Announced {
  readonly address: Uint8Array;
  readonly link: number;
}

export type DaemonAnswer =
  | { readonly kind: "found"; readonly announced: readonly Announced[] }
  /** Nobody has announced the name, or no address of the family. */
  | { readonly kind: "none" }
  /** The program does not run, or does not speak mDNS. */
  | Away;

export interface Away {
  readonly kind: "away";
  readonly problem: string;
  /** What to do about it; undefined where the program does not run, which another one may. */
  readonly remedy: string | undefined;
}

export interface Daemon {
  readonly name: NonNullable<MdnsReport["by"]>;
  readonly path: string;
  request(name: string, family: Family): string;
  /** The last byte of a reply. */
  readonly end: number;
  read(reply: string, family: Family): DaemonAnswer;
}

const NONE: DaemonAnswer = { kind: "none" };

/** By the interface and the protocol on which the name was found; the protocol and the name are not needed. */
const AVAHI_FOUND = /^\+ (\d{1,9}) \d{1,9} \S{1,255} (\S{1,64})$/;
const AVAHI_FAILED = /^-\s?\d{1,5}\b/;

const AVAHI_REMEDY = "Look at the log of avahi-daemon on this machine, and restart it.";
const RESOLVED_REMEDY =
  "Set MulticastDNS=yes in /etc/systemd/resolved.conf and for the link of the local network (resolvectl mdns LINK yes; in its .network file to last), or install avahi-daemon.";

export const AVAHI: Daemon = {
  name: "avahi-daemon",
  path: "/run/avahi-daemon/socket",
  request: (name, family) => `RESOLVE-HOSTNAME-IPV${family} ${name}\n`,
  end: 0x0a,
  read: (reply, family) => {
    if (AVAHI_FAILED.test(reply)) return NONE;
    const [, link = "", text = ""] = AVAHI_FOUND.exec(reply) ?? [];
    const address = addressOf(text, family);
    return address === undefined
      ? unreadable("avahi-daemon", AVAHI_REMEDY)
      : { kind: "found", announced: [{ address, link: Number(link) }] };
  },
};

/** Of systemd's sd-resolve: only mDNS over IPv4 and IPv6, and no search domains. */
const VARLINK_FLAGS = (1 << 3) | (1 << 4) | (1 << 8);
const VARLINK_FAMILY = { 4: 2, 6: 10 } as const;
/** What it says of a name where no link speaks mDNS. */
const NOT_ON = /\.(?:NoNameServers|NetworkDown|ServiceNotProvided)$/;

export const RESOLVED: Daemon = {
  name: "systemd-resolved",
  path: "/run/systemd/resolve/io.systemd.Resolve",
  request: (name, family) => {
    const parameters = { name, family: VARLINK_FAMILY[family], flags: VARLINK_FLAGS };
    return `${JSON.stringify({ method: "io.systemd.Resolve.ResolveHostname", parameters })}\0`;
  },
  end: 0,
  read: (reply, family) => readVarlink(reply, family) ?? unreadable("systemd-resolved", RESOLVED_REMEDY),
};

/** Asks for the addresses of one family; returns what ends it before there is an answer. `onAnswer` is called once, or never after that. */
export function ask(
  daemon: Daemon,
  root: number,
  name: string,
  family: Family,
  onAnswer: (answer: DaemonAnswer) => void,
): () => void {
  let socket: Socket;
  try {
    socket = connectInRoot(root, daemon.path);
  } catch (error) {
    const answer = absent(daemon, error);
    const timer = setImmediate(() => guard.run("elsewhere", 0, () => onAnswer(answer)));
    return () => clearImmediate(timer);
  }
  const bytes = new ReplyBytes(MDNS_LIMITS.replyBytes);
  let isDone = false;
  const end = (answer?: DaemonAnswer): void => {
    if (isDone) return;
    isDone = true;
    socket.destroy();
    if (answer !== undefined) guard.run("elsewhere", 0, () => onAnswer(answer));
  };
  socket.on("error", (error) => end(absent(daemon, error)));
  socket.on("close", () => end(absent(daemon, new Error("it closed the connection"))));
  socket.on("data", (chunk) => {
    const at = chunk.indexOf(daemon.end);
    if (!bytes.push(at === -1 ? chunk : chunk.subarray(0, at))) end(unreadable(daemon.name, AVAHI_REMEDY));
    else if (at !== -1) end(daemon.read(bytes.take(), family));
  });
  socket.write(daemon.request(name, family));
  return () => end();
}

/** Whether there is something at its path, which need not be a program that answers. */
export function isThere({ path }: Daemon, root: number): boolean {
  try {
    closeSync(openInRoot(root, path, O_PATH));
    return true;
  } catch {
    return false;
  }
}

/** The path is that of the engine's host, whatever links are on the way; the connection has been made when the descriptor is closed. */
function connectInRoot(root: number, path: string): Socket {
  const fd = openInRoot(root, path, O_PATH);
  try {
    return connect({ path: `/proc/self/fd/${fd}` });
  } finally {
    closeSync(fd);
  }
}

export function missing({ name, path }: Daemon): Away {
  return { kind: "away", problem: `${name} does not run on this machine (${path})`, remedy: undefined };
}

function absent(daemon: Daemon, error: unknown): Away {
  const isMissing = codeOf(error) === "ENOENT" || codeOf(error) === "ECONNREFUSED" || codeOf(error) === "ENOTDIR";
  if (isMissing) return missing(daemon);
  const { name } = daemon;
  return { kind: "away", problem: `${name} does not answer: ${reasonOf(error)}`, remedy: `Restart ${name}.` };
}

function unreadable(name: string, remedy: string): DaemonAnswer {
  return { kind: "away", problem: `${name} sends replies that cannot be read`, remedy };
}

function readVarlink(reply: string, family: Family): DaemonAnswer | undefined {
  const message = parsed(reply);
  if (message === undefined) return undefined;
  const { error, parameters } = message;
  if (typeof error === "string") {
    const problem = "systemd-resolved does not ask the local network: MulticastDNS is not on";
    return NOT_ON.test(error) ? { kind: "away", problem, remedy: RESOLVED_REMEDY } : NONE;
  }
  const { addresses } = (parameters ?? {}) as { readonly addresses?: unknown };
  if (!Array.isArray(addresses)) return undefined;
  const announced = (addresses as readonly unknown[]).flatMap((each) => announcedOf(each, family) ?? []);
  return announced.length === 0 ? NONE : { kind: "found", announced };
}

function parsed(text: string): { readonly error?: unknown; readonly parameters?: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function announcedOf(value: unknown, family: Family): Announced | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { ifindex = 0, address } = value as { readonly ifindex?: unknown; readonly address?: unknown };
  if (!Array.isArray(address) || address.length !== (family === 4 ? 4 : 16)) return undefined;
  const isBytes = address.every((byte) => Number.isInteger(byte) && byte >= 0 && byte <= 0xff);
  if (!isBytes || typeof ifindex !== "number" || !Number.isInteger(ifindex)) return undefined;
  return { address: Uint8Array.from(address as readonly number[]), link: ifindex };
}

function addressOf(text: string, family: Family): Uint8Array | undefined {
  const bytes = addressBytes(text);
  return bytes?.length === (family === 4 ? 4 : 16) ? Uint8Array.from(bytes) : undefined;
}

export function textOf({ address }: Announced): string {
  return addressText(address);
}
