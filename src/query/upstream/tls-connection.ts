/**
 * TlsConnection: one connection to a server over TLS (RFC 7858), on a socket that may still be connecting. Nothing is sent that
 * could be read before the certificate is verified; if it does not hold, the connection ends.
 *
 * The server may be hostile, and its bytes are costly: a handshake takes a millisecond, and a record of 27 bytes may change the
 * keys. So they are given to OpenSSL in pieces, within a budget for each turn of the event loop: one for the handshakes of all
 * connections, and one of each container for what follows. The bytes that arrive beside answers are limited.
 *
 *   waits for the authorities --> waits for the budget --> handshake --(verified)--> data --> closed
 */
import { Socket, isIP } from "node:net";
import { Duplex } from "node:stream";
import { type PeerCertificate, type TLSSocket, checkServerIdentity, connect } from "node:tls";

import { LIMITS } from "../../base/limits.ts";
import { codeOf, reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { shortened } from "../../base/lib/text.ts";
import { type Server, TLS_FAILED, type TlsFailure, type TlsFailureKind } from "../../base/model/view.ts";
import { acknowledge } from "../../kernel/libc.ts";
import type { StreamBudget } from "../client/stream-budget.ts";
import type { TlsTrust, Trusted } from "./tls-trust.ts";

/** What is kept of a server between connections. */
export class TlsMemory {
  /** Why the last connection failed before it was verified; undefined if it did not. */
  failure: TlsFailure | undefined;
  #session: Buffer | undefined;
  #sinceMs = -Infinity;

  /** What the next connection may begin with, which saves it the certificate. An old one would outlive its certificate. */
  sessionAt(nowMs: number): Buffer | undefined {
    return nowMs - this.#sinceMs < LIMITS.tls.sessionMs ? this.#session : undefined;
  }

  /** `isVerified`: on a connection whose certificate was verified, and not on one that was resumed itself. */
  keep(session: Buffer, isVerified: boolean, nowMs: number): void {
    if (session.length > LIMITS.tls.sessionBytes) return;
    this.#session = session;
    if (isVerified) this.#sinceMs = nowMs;
  }

  fail(why: TlsFailure): void {
    this.failure = why;
    this.#session = undefined;
  }
}

/** A server to query over TLS. */
export interface TlsTarget {
  readonly server: Server;
  readonly trust: TlsTrust;
  /** The budget of all handshakes. */
  readonly handshakes: StreamBudget;
  readonly memory: TlsMemory;
}

interface TlsListener {
  /** The certificate is verified: what is written from now on is sent. */
  readonly onSecure: () => void;
  readonly onData: (chunk: Buffer) => void;
  /** Whether more is to come. */
  readonly isAwaiting: () => boolean;
  /** The server has closed it. */
  readonly onEnd: () => void;
  /** It failed, or was idle. Not called after `destroy`. */
  readonly onFailed: (reason: string) => void;
}

const IDLE = "timed out";

/** What OpenSSL says of a certificate, as Node names it. */
const TIME_CODES: ReadonlySet<string | undefined> = new Set(["CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID"]);
const CHAIN_CODE = /^(?:CERT_|SELF_SIGNED|DEPTH_ZERO|UNABLE_TO|INVALID_|PATH_LENGTH|HOSTNAME_MISMATCH)/;
const OTHER_NAME = "ERR_TLS_CERT_ALTNAME_INVALID";

export class TlsConnection {
  readonly #target: TlsTarget;
  readonly #budget: StreamBudget;
  readonly #listener: TlsListener;
  readonly #fd: number;
  readonly #raw: Socket;
  readonly #incoming: Incoming;
  readonly #goOn = (): void => this.#guarded(() => this.#feed());
  #secure: TLSSocket | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isSecure = false;
  #isClosed = false;
  /** The server has sent its last byte. */
  #isEnded = false;
  /** OpenSSL has enough for now. */
  #isFull = false;
  /** Received, and not given to OpenSSL yet. */
  readonly #chunks: Buffer[] = [];
  #waiting = 0;
  /** Bytes that OpenSSL may still get without an answer in them. */
  #allowed: number = LIMITS.tls.greetingBytes;
  #dates: string | undefined;
  #from = "";

  /** Takes ownership of the socket. `budget`: the container's. */
  constructor(fd: number, target: TlsTarget, budget: StreamBudget, listener: TlsListener) {
    this.#target = target;
    this.#budget = budget;
    this.#listener = listener;
    this.#fd = fd;
    this.#raw = new Socket({ fd, readable: true, writable: true });
    this.#raw.setNoDelay(true);
    // It stays open for later queries, which must not keep the process alive.
    this.#raw.unref();
    this.#raw.on("error", (error) => this.#guarded(() => this.#onRawError(error)));
    this.#raw.setTimeout(LIMITS.tls.idleMs, () => this.#guarded(() => this.#end(IDLE)));
    this.#incoming = new Incoming(this.#raw, () => this.#guarded(() => this.#onRoom()));
    // Timers run before sockets: after this process was blocked, the greeting may be waiting in the socket.
    const onLate = (): void => void setImmediate(() => this.#guarded(() => this.#onLate()));
    this.#timer = setTimeout(onLate, LIMITS.tls.handshakeMs).unref();
    // Deferred: the creator must not be called back before it has the object.
    guard.defer(0, () => target.trust.use((trusted) => this.#guarded(() => this.#begin(trusted))));
  }

  /** Bytes that it holds. */
  get writableLength(): number {
    const { writableLength = 0 } = this.#secure ?? {};
    return this.#waiting + this.#raw.writableLength + this.#incoming.held + writableLength;
  }

  /** May be called only once the connection is secure. */
  write(query: Buffer): void {
    this.#secure?.write(query);
  }

  pause(): void {
    this.#secure?.pause();
  }

  resume(): void {
    this.#secure?.resume();
  }

  destroy(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#secure?.destroy();
    this.#raw.destroy();
    this.#chunks.length = this.#waiting = 0;
  }

  /** An internal error costs the connection. */
  #guarded(work: () => void): void {
    if (this.#isClosed) return;
    if (!guard.run("upstream", 0, work) && !this.#isClosed) this.#end("internal error");
  }

  #begin(trusted: Trusted): void {
    if (this.#isClosed) return;
    if ("kind" in trusted) return this.#fail(trusted);
    const { handshakes } = this.#target;
    if (handshakes.hasLeft) return this.#start(trusted);
    handshakes.read(this.#raw, () => this.#guarded(() => this.#start(trusted)), false);
  }

  #start({ context, from }: Exclude<Trusted, TlsFailure>): void {
    const { handshakes, memory, server } = this.#target;
    const name = server.tls ?? "";
    handshakes.spend(HANDSHAKE_COST);
    this.#from = from;
    const session = memory.sessionAt(performance.now());
    const secure = connect({
      socket: this.#incoming,
      secureContext: context,
      // NODE_TLS_REJECT_UNAUTHORIZED must not turn verification off.
      rejectUnauthorized: true,
      checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
      ...(isIP(name) === 0 && { servername: name }),
      ...(session !== undefined && { session }),
    });
    this.#secure = secure;
    // Before Node judges the certificate, after which there is none to be shown.
    secure.prependListener("secure", () => {
      this.#dates = datesOf(secure.getPeerCertificate());
    });
    secure.on("secureConnect", () => this.#guarded(() => this.#onSecure(secure)));
    secure.on("session", (given: Buffer) => memory.keep(given, !secure.isSessionReused(), performance.now()));
    secure.on("data", (chunk: Buffer) => this.#guarded(() => this.#onData(chunk)));
    secure.on("error", (error) => this.#guarded(() => this.#onError(error)));
    for (const end of ["end", "close"]) secure.on(end, () => this.#guarded(() => this.#onEnd()));
    this.#raw.on("data", (chunk: Buffer) => this.#guarded(() => this.#onRaw(chunk)));
    for (const end of ["end", "close"]) {
      this.#raw.on(end, () =>
        this.#guarded(() => {
          this.#isEnded = true;
          this.#feed();
        }),
      );
    }
    // The socket may have been paused while the handshake waited for the budget.
    this.#raw.resume();
  }

  #onSecure(secure: TLSSocket): void {
    if (!secure.authorized) return this.#fail(failedAs("untrusted", "its certificate is not verified"));
    this.#isSecure = true;
    this.#allowed = LIMITS.tls.besideBytes;
    this.#target.memory.failure = undefined;
    clearTimeout(this.#timer);
    this.#listener.onSecure();
  }

  #onData(chunk: Buffer): void {
    this.#allowed = Math.min(LIMITS.tls.besideBytes, this.#allowed + chunk.length * ALLOWED_FOR_EACH);
    this.#listener.onData(chunk);
  }

  #onRaw(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#waiting += chunk.length;
    this.#feed();
    // Many servers hold an answer back until the record before is acknowledged, beginning with the tickets after the handshake;
    // without this for 40 ms, or until the next query.
    if (!this.#isClosed && this.#listener.isAwaiting()) acknowledge(this.#fd);
  }

  #onRoom(): void {
    if (!this.#isFull) return;
    this.#isFull = false;
    this.#feed();
  }

  /** Gives OpenSSL as much as the budget allows. */
  #feed(): void {
    const { handshakes } = this.#target;
    while (!this.#isClosed && this.#waiting > 0 && !this.#isFull) {
      const budget = this.#isSecure ? this.#budget : handshakes;
      if (!budget.hasLeft) {
        budget.read(this.#raw, this.#goOn, false);
        return;
      }
      const piece = this.#takePiece();
      budget.spend(this.#isSecure ? piece.length * BYTE_COST : HANDSHAKE_COST);
      this.#allowed -= piece.length;
      if (this.#allowed < 0) return this.#onTooMuch();
      this.#isFull = !this.#incoming.push(piece);
    }
    if (this.#isClosed) return;
    if (this.#isFull) this.#raw.pause();
    else if (this.#isEnded) this.#incoming.push(null);
    else this.#raw.resume();
  }

  #takePiece(): Buffer {
    const [first] = this.#chunks as [Buffer];
    const piece = first.subarray(0, PIECE_BYTES);
    if (piece.length === first.length) this.#chunks.shift();
    else this.#chunks[0] = first.subarray(PIECE_BYTES);
    this.#waiting -= piece.length;
    return piece;
  }

  #onTooMuch(): void {
    const { greetingBytes } = LIMITS.tls;
    if (this.#isSecure) this.#end("the server sends too much that is no answer");
    else this.#fail(failedAs("absent", `its handshake is longer than ${greetingBytes} bytes`));
  }

  #onEnd(): void {
    if (this.#isSecure) return this.#listener.onEnd();
    this.#fail(failedAs("absent", `what listens at its port ${this.#port} closes the connection: it speaks no TLS`));
  }

  #onLate(): void {
    if (this.#isSecure) return;
    const within = `within ${LIMITS.tls.handshakeMs / 1_000} s`;
    // There is no event for a socket that was connecting when Node got it; one that is connected has a peer.
    if (this.#raw.remoteAddress === undefined)
      return this.#fail(failedAs("blocked", `there is no connection to its port ${this.#port} ${within}`));
    this.#fail(failedAs("absent", `what listens at its port ${this.#port} answers no TLS ${within}`));
  }

  #onRawError(error: Error): void {
    if (this.#isSecure) return this.#listener.onEnd();
    const code = codeOf(error) ?? error.message;
    if (code === "ECONNREFUSED")
      return this.#fail(failedAs("absent", `nothing listens at its port ${this.#port} (${code})`));
    if (code === "ECONNRESET" || code === "EPIPE") return this.#onEnd();
    this.#fail(failedAs("blocked", `there is no connection to its port ${this.#port} (${code})`));
  }

  #onError(error: Error): void {
    if (this.#isSecure) return this.#listener.onEnd();
    const code = codeOf(error);
    if (code === OTHER_NAME) return this.#fail(this.#otherName(error));
    if (TIME_CODES.has(code)) {
      const dates = this.#dates === undefined ? "" : ` (${this.#dates})`;
      const what = code === "CERT_HAS_EXPIRED" ? "is not valid any more" : "is not valid yet";
      const now = `${new Date().toISOString().slice(0, "2026-01-01T00:00".length).replace("T", " ")} UTC`;
      return this.#fail(failedAs("time", `by this machine's clock, ${now}, its certificate ${what}${dates}`));
    }
    if (code !== undefined && CHAIN_CODE.test(code))
      return this.#fail(failedAs("untrusted", `its certificate is of no authority in ${this.#from} (${code})`));
    if (code === "ECONNRESET" || code === "EPIPE") return this.#onEnd();
    const what = shortened(
      reasonOf(error)
        .replace(/^.*error:/s, "")
        .replaceAll(/\s+/g, " "),
      ERROR_CHARS,
    );
    this.#fail(failedAs("absent", `what listens at its port ${this.#port} speaks no TLS that could be used (${what})`));
  }

  #otherName(error: Error): TlsFailure {
    const { cert } = error as { cert?: Pick<PeerCertificate, "subjectaltname" | "subject"> };
    const names = (cert?.subjectaltname ?? "").replaceAll(/DNS:|(IP) Address:/g, "");
    const shown = names === "" ? "for no name" : `for ${shortened(names, NAMES_CHARS)}`;
    return failedAs("name", `its certificate is ${shown}, and not for ${this.#target.server.tls}`);
  }

  #fail(why: TlsFailure): void {
    this.#target.memory.fail(why);
    this.#end(`${TLS_FAILED}${why.text}`);
  }

  #end(reason: string): void {
    this.destroy();
    guard.run("upstream", 0, () => this.#listener.onFailed(reason));
  }

  get #port(): number {
    return this.#target.server.port;
  }
}

const { bytes: BUDGET } = LIMITS.streamBudget;
/** Two pieces of handshakes in a turn of the event loop, each of which takes up to a millisecond. */
const HANDSHAKE_COST = BUDGET / 2;
const PIECE_BYTES = LIMITS.streamReadBytes;
/** After a handshake, each container gets 4 KB in a turn of the event loop: they may be 150 changes of keys. */
const BYTE_COST = BUDGET / PIECE_BYTES;
/** Each byte of an answer allows this many others: records have a header and a trailer. */
const ALLOWED_FOR_EACH = 3;
const ERROR_CHARS = 80;
const NAMES_CHARS = 120;

function failedAs(kind: TlsFailureKind, text: string): TlsFailure {
  return { kind, text };
}

function datesOf(certificate: Partial<PeerCertificate> | null): string | undefined {
  const { valid_from: from, valid_to: to } = certificate ?? {};
  return from === undefined || to === undefined ? undefined : `from ${from} to ${to}`;
}

/** What OpenSSL reads from, and writes to. */
class Incoming extends Duplex {
  readonly #raw: Socket;
  readonly #onRoom: () => void;

  constructor(raw: Socket, onRoom: () => void) {
    super({ readableHighWaterMark: LIMITS.streamReadBytes });
    this.#raw = raw;
    this.#onRoom = onRoom;
  }

  get held(): number {
    return this.readableLength + this.writableLength;
  }

  override _read(): void {
    this.#onRoom();
  }

  override _write(chunk: Buffer, _: string, onDone: () => void): void {
    this.#raw.write(chunk);
    onDone();
  }

  /** OpenSSL may give a record in parts, which are one packet. */
  override _writev(chunks: { readonly chunk: Buffer }[], onDone: () => void): void {
    this.#raw.write(Buffer.concat(chunks.map(({ chunk }) => chunk)));
    onDone();
  }

  override _final(onDone: () => void): void {
    this.#raw.end();
    onDone();
  }

  override _destroy(_: Error | null, onDone: (error: null) => void): void {
    this.#raw.destroy();
    onDone(null);
  }
}
