/**
 * ScopeOptions: the containers that a lease is for, as the commands for tests choose them: also ones that start later.
 */
import type { Command } from "commander";

import type { LeaseScope } from "../../src/api/lease.ts";

export interface ScopeOptions {
  readonly in?: string;
  readonly project?: string;
  readonly network?: string;
  readonly label?: string;
}

export function addScopeOptions(command: Command): Command {
  return command
    .option("--in <container>", "only in this container, or in those of this Compose service")
    .option("-p, --project <project>", "only containers of this Compose project")
    .option("--network <network>", "only in containers on this network")
    .option("--label <label>", "only in containers with this label, as KEY or KEY=VALUE");
}

export function scopeOf({ in: container, project, network, label }: ScopeOptions): LeaseScope {
  return {
    ...(container !== undefined && { container }),
    ...(project !== undefined && { project }),
    ...(network !== undefined && { network }),
    ...(label !== undefined && { label }),
  };
}

/** For messages. */
export function scopeText(scope: LeaseScope): string {
  const parts = Object.entries(scope).map(([key, value]) => `${key} ${String(value)}`);
  return parts.length === 0 ? "all containers" : parts.join(", ");
}
