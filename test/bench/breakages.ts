// From each breakage of a Compose project to its cause: from the reply that fails, or from the change where no query fails, until
// `GET /v1/failures` names the cause; where nothing fails, until explain does.

import { performance } from "node:perf_hooks";

import { dig } from "../support/client/dig.ts";
import { waitFor } from "../support/rig/wait.ts";
import { type Breakage, openBrokenShop, restore } from "../docker/breakages/breakage.ts";
import type { Shop } from "../docker/breakages/shop.ts";
import { BREAKAGES } from "../docker/breakages/table.ts";
import { type Row, median } from "./figures.ts";

const POLL_MS = 5;

export async function benchBreakages(rounds: number): Promise<Row[]> {
  await using shop = await openBrokenShop();
  const rows: Row[] = [];
  for (const breakage of BREAKAGES) {
    const took: number[] = [];
    for (let round = 0; round < rounds; round++) took.push(await untilNamed(shop, breakage));
    const [p50, max] = [median(took), Math.max(...took)].map((ms) => `${ms.toFixed(0)} ms`);
    rows.push({ what: `${breakage.what} (${breakage.code})`, measured: `${p50}, at most ${max}` });
  }
  return rows;
}

async function untilNamed(shop: Shop, { code, isExplained, break: make }: Breakage): Promise<number> {
  const api = shop.client;
  const { client, name, ask = async () => await dig(client, name), clean } = await make(shop);
  const isNamed = async (): Promise<true | undefined> => {
    const causes =
      isExplained === true
        ? (await api.explain({ container: client.name, name })).causes
        : causesIn(await api.failures({ container: client.name }));
    return causes.some((each) => each?.code === code) ? true : undefined;
  };
  try {
    await ask();
    const startMs = performance.now();
    await waitFor(`${name} to be named`, isNamed, { everyMs: POLL_MS });
    return performance.now() - startMs;
  } finally {
    await clean?.();
    await restore(shop);
  }
}

function causesIn({
  failures,
  misleading,
  unwatched,
}: Awaited<ReturnType<Shop["failures"]>>): ({ readonly code: string } | null)[] {
  const now = failures.filter(({ earlier }) => earlier === undefined);
  return [...now, ...misleading, ...unwatched].map(({ cause }) => cause);
}
