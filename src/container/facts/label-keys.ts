/**
 * LabelKeys: the keys of all labels that somebody reads. No others are kept of what the engine says, because the author of an
 * image decides how many there are, and how long.
 */
import { Fault } from "../../base/lib/fault.ts";
import { LIMITS } from "../../base/limits.ts";

/** Those that dns11 reads in any case. `test/unit/container/facts/label-keys.test.ts` looks for others in the code. */
const ALWAYS = [
  ...["address-order", "answers", "dns", "enable", "health", "kind", "names", "policy", "ports", "sandbox"].map(
    ofDns11,
  ),
  ...["project", "ptr", "search", "service", "stopped", "ttl"].map(ofDns11),
  ...["project", "service", "version", "container-number", "oneoff", "config-hash"].map(ofCompose),
  ...["project.config_files", "project.working_dir"].map(ofCompose),
  ...["io.x-k8s.kind.cluster", "io.x-k8s.kind.role", "k3d.cluster", "k3d.role", "role.minikube.sigs.k8s.io"],
];

export class LabelKeys {
  readonly #keys = new Set(ALWAYS);
  /** How often keys were added: what was read before lacks them. */
  generation = 0;

  has(key: string): boolean {
    return this.#keys.has(key);
  }

  /** Somebody reads these, too. Returns whether one of them is new. Throws if there are too many. */
  add(keys: Iterable<string>): boolean {
    const added = [...new Set(keys)].filter((key) => !this.#keys.has(key));
    if (added.length === 0) return false;
    if (this.#keys.size + added.length > LIMITS.labelKeys) {
      throw new Fault(
        "TOO_MANY_RULES",
        `Containers are chosen by ${LIMITS.labelKeys} different labels since dns11 started`,
        {
          remedy: "Choose them by fewer labels with more values, or restart dns11.",
        },
      );
    }
    for (const key of added) this.#keys.add(key);
    this.generation++;
    return true;
  }
}

/** The keys of the labels by which filters choose containers. */
export function labelKeysOf(filters: readonly { readonly kind: string; readonly key?: string }[]): string[] {
  return filters.flatMap(({ key }) => key ?? []);
}

function ofDns11(name: string): string {
  return `io.dns11.${name}`;
}

function ofCompose(name: string): string {
  return `com.docker.compose.${name}`;
}
