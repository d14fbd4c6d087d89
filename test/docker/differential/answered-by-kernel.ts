// How many queries of all containers the kernel has answered in a run.

import type { Dns11 } from "../../support/program/dns11.ts";

export async function answeredByKernel(dns11: Dns11): Promise<number> {
  const { containers } = await dns11.status();
  return containers.reduce((sum, { counters }) => sum + (counters?.["kernel"] ?? 0), 0);
}
