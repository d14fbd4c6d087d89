/**
 * ProbePages: pages that say whether a container resolves a name: /healthz-PAGE. Every process of the machine can request them, so
 * each asks once for all requests of a second.
 */
import { CoalescedCall } from "../../base/lib/coalesced-call.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import { LIMITS } from "../../base/limits.ts";
import { type HealthProbe, healthProbeText } from "../../base/model/health-probe.ts";
import { lookup } from "./lookup.ts";
import type { ControlPorts } from "../situation/ports.ts";

export interface ProbeResult {
  readonly isHealthy: boolean;
  readonly text: string;
}

interface ProbePagesParts {
  readonly probes: () => readonly HealthProbe[];
  /** Undefined before dns11 serves. */
  readonly ports: () => Pick<ControlPorts, "containers" | "inside"> | undefined;
}

export class ProbePages {
  readonly #parts: ProbePagesParts;
  readonly #calls = new Map<string, CoalescedCall<ProbeResult>>();

  constructor(parts: ProbePagesParts) {
    this.#parts = parts;
  }

  /** Undefined where no probe has this page. */
  async get(page: string): Promise<ProbeResult | undefined> {
    const probes = this.#parts.probes();
    const probe = probes.find((each) => each.page === page);
    if (probe === undefined) return undefined;
    const texts = new Set(probes.map(healthProbeText));
    for (const text of this.#calls.keys()) if (!texts.has(text)) this.#calls.delete(text);
    const text = healthProbeText(probe);
    const call =
      this.#calls.get(text) ?? new CoalescedCall(async () => await this.#ask(probe), LIMITS.healthProbeEveryMs);
    this.#calls.set(text, call);
    return await call.get();
  }

  async #ask({ name, container }: HealthProbe): Promise<ProbeResult> {
    const ports = this.#parts.ports();
    if (ports === undefined) return { isHealthy: false, text: "dns11 does not serve yet" };
    try {
      const { rcode, answers } = await lookup(ports, { container, name }, AbortSignal.timeout(LIMITS.healthProbeMs));
      if (rcode === "NOERROR" && answers.length > 0) return { isHealthy: true, text: "OK" };
      const what = rcode === null ? "no reply" : rcode === "NOERROR" ? "no records" : rcode;
      return { isHealthy: false, text: `${name} in ${container}: ${what}` };
    } catch (error) {
      return { isHealthy: false, text: `${name} in ${container}: ${reasonOf(error)}` };
    }
  }
}
