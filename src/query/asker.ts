/**
 * Asker: one network namespace as the query's way sees it. Queries bring no name of who asks; the socket they came in
 * on does. It holds what that namespace may know now, and what it has asked so far.
 */
import type { View } from "../model/view.ts";

export class Asker {
  /** Replaced whole when the registry says so; a query sees one of them from begin to end. */
  view: View;
  /** The nonce that a verification is waiting to see arrive, as hexadecimal text. */
  nonce: string | undefined;
  readonly seenNonce = { udp: false, tcp: false };
  readonly counters = {
    queries: 0,
    local: 0,
    forwarded: 0,
    malformed: 0,
    ignored: 0,
    /** Replies that the kernel would not send. */
    unsent: 0,
    /** Forwarded queries that were refused because too many were waiting already. */
    refused: 0,
    failed: 0,
  };

  constructor(view: View) {
    this.view = view;
  }
}
