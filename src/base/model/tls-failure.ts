/**
 * TlsFailure: why a server cannot be asked by TLS, and what helps. It is not asked in any other way instead.
 *
 *   blocked      there is no connection to its port: a firewall drops the packets
 *   absent       nothing listens there, or what does speaks no TLS
 *   name         its certificate is for another name
 *   untrusted    its certificate is of no authority that this machine trusts
 *   time         its certificate is not valid yet, or not any more; or the clock is wrong
 *   authorities  the file of authorities cannot be used
 */
import type { Server } from "./view.ts";

export type TlsFailureKind = "blocked" | "absent" | "name" | "untrusted" | "time" | "authorities";

export interface TlsFailure {
  readonly kind: TlsFailureKind;
  /** A clause about the server, such as "nothing listens at its port 853". */
  readonly text: string;
}

/** Before the text, where it is the reason of a failed query. */
export const TLS_FAILED = "TLS: ";

/** What to do, as a clause. */
export function tlsAdvice(
  kind: TlsFailureKind,
  { address, port, tls = "" }: Pick<Server, "address" | "port" | "tls">,
): string {
  switch (kind) {
    case "blocked":
      return `allow TCP port ${port} to ${address} in the firewalls on the way`;
    case "absent":
      return `have ${address} serve DNS over TLS at port ${port}, or write the port at which it does: tls://ADDRESS:PORT`;
    case "name":
      return `write a name that is in the certificate behind the address, in place of ${tls}: tls://ADDRESS#NAME`;
    case "untrusted":
      return (
        "if the server is yours, add its authority to those of this machine (update-ca-certificates), or set " +
        "forward: {tls-ca: FILE}; if not, something on the way may answer in its place"
      );
    case "time":
      return `compare the clock of this machine with these dates (timedatectl); if it is right, ${address} needs a new certificate`;
    case "authorities":
      return "correct the setting forward.tls-ca";
  }
}
