/**
 * KindStart: what to do so that dns11 serves KIND nodes, by how it runs: the commands and the doctor say the same.
 */
import type { SettingOrigins } from "./setting-origins.ts";

/** What decides, of the status of a dns11. */
export interface ServedKind {
  readonly config: string | null;
  readonly settings: SettingOrigins;
}

/** undefined: none runs. */
export function startText(status: ServedKind | undefined): string {
  if (status === undefined) {
    return "dns11 does not run. Start it with: sudo dns11 run --kind auto. As a service: `kind: {nodes: [auto]}` in its settings file, then systemctl start dns11.";
  }
  const nodes = status.settings["kind.nodes"]?.value;
  if (Array.isArray(nodes) && nodes.length > 0) {
    return `dns11 runs and serves the nodes that kind.nodes selects (${nodes.map(String).join(", ")}): dns11 ps says of each container why it is not served.`;
  }
  return status.config === null
    ? "dns11 runs without --kind. Stop it, and start it with: sudo dns11 run --kind auto."
    : `dns11 runs, and its settings select no nodes. Add \`kind: {nodes: [auto]}\` to ${status.config}, then run: dns11 reload.`;
}
