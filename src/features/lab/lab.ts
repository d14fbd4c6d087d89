import type { FailuresReport } from "../../api/failures.ts";
import type { ContainerFact } from "../../container/facts/fact.ts";
import { gauge, sample, verdictFamily } from "../../metrics/exposition.ts";
import type { RunCore, Running } from "../contract.ts";
import { Leases } from "./leases.ts";
import { RuleBook } from "./rule-book.ts";
import type { Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import type { LeaseReply } from "../../api/lease.ts";
import { LineRoute, type Routes, type Holder } from "../../control/server/http.ts";
import type { Lease } from "./lease.ts";
import { LAB_LIMITS } from "./limits.ts";

/** Faults, answers and recordings for test suites, each for as long as a connection to the control socket. */
export function open({ observe }: RunCore): Running {
  const book = new RuleBook();
  observe({
    open: (containerId, client) => {
      book.open(client, containerId);
      return undefined;
    },
    close: () => undefined,
  });
  let facts = (): ReadonlyMap<string, ContainerFact> => new Map();
  /** A KIND node, of which nothing is learned, has no labels. */
  let learnLabel = async (_key: string): Promise<void> => await Promise.resolve();
  const leases = new Leases({ book, facts: () => facts(), learnLabel: async (key) => await learnLabel(key) });
  return {
    engine: (core) => {
      ({ learnLabel } = core);
    },
    containersChange: () => book.containersChanged(),
    routes: ({ containers, holderOf }) => {
      facts = () => containers.facts;
      return leaseRoutes(leases, holderOf);
    },
    failures: (isChosen): Partial<FailuresReport> => {
      const injected = leases.injected(isChosen);
      return injected.length > 0 ? { injected } : {};
    },
    metrics: () => [
      gauge("dns11_leases", "Leases of tests that are open.", [sample(leases.count)]),
      gauge("dns11_lease_rules", "Rules and recordings of these leases.", [sample(leases.rules)]),
      verdictFamily(Object.entries(book.counts).map(([verdict, count]) => sample(count, { verdict }))),
    ],
  };
}

/** How often what has been recorded is sent. */
const RECORDED_MS = 100;

/** How long lines that came together are read before others have their turn. */
const TURN_MS = 1;
const TOO_LONG = `The line is longer than ${LAB_LIMITS.lineBytes} bytes: send less in one line`;

/**
 * `POST /v1/lease`, a request that stays open: its lines are answered as they come, and its end ends the lease; and
 * `GET /v1/leases`, which lists those that are open.
 */
function leaseRoutes(leases: Leases, holderOf: (socket: Socket) => Holder): Routes {
  return {
    "GET /v1/leases": async () => await leases.report(),
    // Opened first: a refusal is the response.
    "POST /v1/lease": new LineRoute(LAB_LIMITS.lineBytes, ({ lines, socket }) => {
      const lease = leases.open(holderOf(socket));
      const end = (): void => {
        socket.off("close", end);
        leases.end(lease);
      };
      // Whatever else happens, it does not outlive its connection, which may serve other requests afterwards.
      socket.once("close", end);
      return answers(lines, lease, end);
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
    const inbox = new Inbox(lines);
    let turnMs = performance.now();
    for (;;) {
      // Queries that wait are answered in between.
      if (performance.now() - turnMs > TURN_MS) {
        await turn();
        turnMs = performance.now();
      }
      const result = await inbox.next(lease.isRecording ? RECORDED_MS : undefined);
      for (const recorded of lease.recorded()) {
        yield recorded;
        await turn();
      }
      if (result === undefined) continue;
      if (result.done === true) return;
      if (result.value === undefined) yield lease.refuse(TOO_LONG);
      else if (result.value.trim() !== "") yield await lease.handle(result.value);
    }
  } finally {
    onEnd();
  }
}

/** The next line, which may be waited for several times. */
class Inbox {
  readonly #lines: AsyncIterator<string | undefined>;
  #result: IteratorResult<string | undefined> | undefined;
  #isReading = false;
  #wake: () => void = () => undefined;

  constructor(lines: AsyncIterator<string | undefined>) {
    this.#lines = lines;
  }

  /** Undefined if none has come within `waitMs`. */
  async next(waitMs: number | undefined): Promise<IteratorResult<string | undefined> | undefined> {
    if (!this.#isReading) this.#read();
    if (this.#result === undefined) {
      await new Promise<void>((resolve) => {
        const timer = waitMs === undefined ? undefined : setTimeout(resolve, waitMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    const result = this.#result;
    if (result !== undefined) [this.#result, this.#isReading] = [undefined, false];
    return result;
  }

  #read(): void {
    this.#isReading = true;
    const took = (result: IteratorResult<string | undefined>): void => {
      this.#result = result;
      this.#wake();
    };
    this.#lines.next().then(took, () => took({ done: true, value: undefined }));
  }
}
