/**
 * LeaseRoutes: `POST /v1/lease`, a request that stays open: its lines are answered as they come, and its end ends the lease; and
 * `GET /v1/leases`, which lists those that are open.
 */
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

import type { LeaseReply } from "../../api/lease.ts";
import { LIMITS } from "../../base/limits.ts";
import { LineRoute, type Routes } from "../server/http.ts";
import type { Holder } from "../lease/holder.ts";
import type { Lease } from "../lease/lease.ts";
import type { Leases } from "../lease/leases.ts";

/** How often what has been recorded is sent. */
const RECORDED_MS = 100;
const TOO_LONG = `The line is longer than ${LIMITS.leaseLineBytes} bytes: send less in one line`;

export function leaseRoutes(leases: Leases, holderOf: (socket: Socket) => Holder): Routes {
  return {
    "GET /v1/leases": () => leases.report,
    // Opened first: a refusal is the response.
    "POST /v1/lease": new LineRoute(LIMITS.leaseLineBytes, ({ lines, socket }) => {
      const lease = leases.open(holderOf(socket));
      // Whatever else happens, it does not outlive its connection.
      socket.once("close", () => leases.end(lease));
      return answers(lines, lease, () => leases.end(lease));
    }),
  };
}

/** A line is read when the answers to those before have been taken: whoever does not read waits. */
async function* answers(
  lines: AsyncIterator<string | undefined>,
  lease: Lease,
  onEnd: () => void,
): AsyncGenerator<LeaseReply, void> {
  try {
    let next = lines.next();
    for (;;) {
      const result = lease.isRecording ? await Promise.race([next, sleep(RECORDED_MS)]) : await next;
      yield* lease.recorded();
      if (result === undefined) continue;
      if (result.done === true) return;
      next = lines.next();
      if (result.value === undefined) yield lease.refuse(TOO_LONG);
      else if (result.value.trim() !== "") yield lease.handle(result.value);
    }
  } finally {
    onEnd();
  }
}
