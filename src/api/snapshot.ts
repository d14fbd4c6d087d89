/**
 * Snapshot: what the page shows without a run, as `dns11 ui --static` writes it. null where something could not be read; `errors` says
 * why.
 */
import type { CacheReport } from "./cache.ts";
import type { ContainersReport, NetworksReport, MatrixReport } from "./containers.ts";
import type { EventsReport } from "./events.ts";
import type { FailuresReport } from "./failures.ts";
import type { HistoryReport } from "./history.ts";
import type { QueriesReport } from "./queries.ts";
import type { Status } from "./status.ts";
import type { UpstreamReport } from "./upstreams.ts";

export interface Snapshot {
  readonly format: 1;
  readonly takenAt: string;
  /** Names and addresses are replaced, the same one everywhere by the same word. */
  readonly isRedacted: boolean;
  readonly status: Status | null;
  readonly containers: ContainersReport | null;
  readonly networks: NetworksReport | null;
  readonly matrix: MatrixReport | null;
  readonly failures: FailuresReport | null;
  readonly upstreams: UpstreamReport | null;
  readonly history: HistoryReport | null;
  readonly cache: CacheReport | null;
  readonly events: EventsReport | null;
  readonly queries: QueriesReport | null;
  readonly errors: readonly string[];
}
