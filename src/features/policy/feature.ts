import { typeName } from "../../base/dns/record-type.ts";
import { durationText } from "../../base/lib/quantity.ts";
import { type MapSetting, mapValues } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";
import { type Policy, scopeText } from "./model/policy.ts";

const GROUP = "Run:";

const maps = {
  policies: {
    fallback: [],
    help: "which names some containers may resolve, by the name of the policy: {NAME: {for: [network=NET], mode: enforce, allow: [api.example.com]}}",
    write: policiesText,
    file: async () => await import("./file-schema.ts"),
  } satisfies MapSetting<readonly Policy[]>,
};

/**
 * What containers may ask, be answered and reach. Clients of the control socket may narrow it while dns11 runs, and a sandbox is a
 * command that does.
 */
export const POLICY = {
  maps,
  commands: {
    policy: { group: GROUP, load: async () => await import("./command.ts") },
    "policy learn": { group: GROUP, load: async () => ({ add: (await import("./traffic/command.ts")).addLearn }) },
    "policy diff": { group: GROUP, load: async () => ({ add: (await import("./traffic/command.ts")).addDiff }) },
    "policy apply": { group: GROUP, load: async () => await import("./leases/command.ts") },
    sandbox: { group: GROUP, load: async () => await import("./sandbox/command.ts") },
  },
  cleanup: async () => await import("./cleanup.ts"),
  report: async () => await import("./report.ts"),
  load: async () => await import("./policy.ts"),
} as const;

export function policiesOf(all: Pick<Settings, "features">): readonly Policy[] {
  return mapValues(maps, all).policies;
}

function policiesText(policies: readonly Policy[]): unknown {
  return Object.fromEntries(
    policies.map(({ name, scopes, mode, allow, deny, keepMs, newNamesPerMinute, types, ...choices }) => [
      name,
      {
        for: scopes.map((each) => scopeText(each)),
        mode,
        allow: allow.map(({ text }) => text),
        deny: deny.map(({ text }) => text),
        peers: choices.peers,
        host: choices.host,
        private: choices.private,
        addresses: choices.addresses,
        keep: durationText(keepMs),
        "new-names-per-minute": newNamesPerMinute,
        types: [...types].map((type) => typeName(type)),
      },
    ]),
  );
}
