/**
 * TlsTrust: the certificate authorities that are trusted, those of this machine or of the operator's file, as OpenSSL needs them.
 * Reading 140 of them takes 30 to 60 ms, so they are read in slices, when a connection needs them first, and again when the
 * file has changed.
 */
import { constants as cryptoConstants } from "node:crypto";
import { existsSync, openSync, statSync } from "node:fs";
import { type SecureContext, createSecureContext, rootCertificates } from "node:tls";

import { LIMITS } from "../../base/limits.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { guard } from "../../base/lib/guard.ts";
import { inSlices } from "../../base/lib/slices.ts";
import type { TlsFailure } from "../../base/model/view.ts";
import { readRegular } from "../../kernel/regular-file.ts";

/** Where distributions keep them: Debian and Alpine, Fedora, SUSE, others. */
const MACHINE_FILES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Key exchanges and ciphers that cost the client little, whatever the server chooses: no finite fields, whose sizes a server
 * chooses, and no second handshake on a connection.
 */
const PROTOCOL = {
  minVersion: "TLSv1.2",
  ecdhCurve: "X25519:P-256:P-384",
  ciphers: [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-CHACHA20-POLY1305",
  ].join(":"),
  secureOptions: cryptoConstants.SSL_OP_NO_RENEGOTIATION,
} as const;

/** The authorities, and where they are from; or why there are none. */
export type Trusted = { readonly context: SecureContext; readonly from: string } | TlsFailure;

interface Source {
  readonly from: string;
  /** Changes with the file. */
  readonly stamp: string;
  readonly read: () => readonly string[];
}

export class TlsTrust {
  readonly #file: string | undefined;
  readonly #now: () => number;
  #trusted: Trusted | undefined;
  #stamp = "";
  #lookedMs = -Infinity;
  readonly #waiting: ((trusted: Trusted) => void)[] = [];

  /** `file`: the operator's; without one, the machine's. */
  constructor(file: string | undefined, now: () => number) {
    this.#file = file;
    this.#now = now;
  }

  /** Calls back once the authorities are read, at once if they are. */
  use(onReady: (trusted: Trusted) => void): void {
    if (this.#trusted !== undefined && this.#now() - this.#lookedMs < LIMITS.tls.authoritiesMs) {
      onReady(this.#trusted);
      return;
    }
    this.#waiting.push(onReady);
    if (this.#waiting.length === 1) void this.#look();
  }

  async #look(): Promise<void> {
    try {
      const source = this.#source();
      if (this.#trusted === undefined || source.stamp !== this.#stamp) {
        this.#trusted = { context: await contextOf(source.read()), from: source.from };
        this.#stamp = source.stamp;
      }
    } catch (error) {
      this.#trusted = { kind: "authorities", text: `the authorities cannot be read: ${reasonOf(error)}` };
      this.#stamp = "";
    }
    this.#lookedMs = this.#now();
    const trusted = this.#trusted;
    for (const onReady of this.#waiting.splice(0)) guard.run("upstream", 0, () => onReady(trusted));
  }

  #source(): Source {
    const file = this.#file ?? MACHINE_FILES.find((each) => existsSync(each));
    if (file === undefined) return { from: "the list of Node", stamp: "node", read: () => rootCertificates };
    const { mtimeMs, size, ino } = statSync(file);
    return { from: file, stamp: `${mtimeMs} ${size} ${ino}`, read: () => certificatesIn(file) };
  }
}

function certificatesIn(file: string): readonly string[] {
  const text = readRegular((flags) => openSync(file, flags), LIMITS.tls.authorityBytes).toString("latin1");
  const found = text.match(CERTIFICATE) ?? [];
  if (found.length === 0) throw new Error(`no certificate in ${file}`);
  return found;
}

async function contextOf(certificates: readonly string[]): Promise<SecureContext> {
  const made = createSecureContext({ ...PROTOCOL, ca: [] });
  const context = made.context as { addCACert?: (certificate: string) => void };
  // Not part of Node's documented API, and the only way to go on with something else in between.
  if (context.addCACert === undefined) return createSecureContext({ ...PROTOCOL, ca: [...certificates] });
  let added = 0;
  let problem: unknown;
  const add = function* (): Generator<void> {
    for (const each of certificates) {
      try {
        context.addCACert?.(each);
        added++;
      } catch (error) {
        problem ??= error;
      }
      yield;
    }
  };
  await inSlices(add());
  if (added === 0) throw problem;
  return made;
}
