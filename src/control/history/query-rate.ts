/**
 * QueryRate: limits a stream of queries for a reader that shows only some of them, such as a page: so many a second, the others
 * are counted once a second. What a busy container sends then costs no more than what is shown.
 */
import type { MissedReport, QueryReport, SkippedReport } from "../../api/queries.ts";

const SECOND_MS = 1_000;

type Batch = readonly (QueryReport | MissedReport)[];

/** A queue of one second: at most `perSecond` queries in any second, whatever the batches are. */
export async function* limitedRate(
  batches: AsyncIterable<Batch>,
  perSecond: number,
  now: () => number = () => performance.now(),
): AsyncGenerator<readonly (QueryReport | SkippedReport)[], void> {
  let secondMs = now();
  let left = perSecond;
  let skipped = 0;
  let isPast = true;
  for await (const batch of batches) {
    const queries = batch.filter((each): each is QueryReport => !("missed" in each));
    // The past queries of the first batch were requested by number.
    if (isPast) {
      isPast = false;
      yield queries;
      continue;
    }
    const lines: (QueryReport | SkippedReport)[] = [];
    if (now() - secondMs >= SECOND_MS) {
      if (skipped > 0) lines.push({ skipped });
      [secondMs, left, skipped] = [now(), perSecond, 0];
    }
    const shown = queries.slice(0, left);
    left -= shown.length;
    skipped += queries.length - shown.length;
    for (const each of batch) if ("missed" in each) skipped += each.missed;
    yield [...lines, ...shown];
  }
}
