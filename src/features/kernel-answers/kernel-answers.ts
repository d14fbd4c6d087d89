import { release } from "node:os";

import { Fault, reasonOf } from "../../base/lib/fault.ts";
import { ownSlice } from "../../base/lib/slices.ts";
import { KERNEL_ANSWER_LIMITS } from "./limits.ts";
import type { ContainerStatus } from "../../api/status.ts";
import type { AnsweredByReport } from "../../base/model/answered-by.ts";
import type { ExtraPlace, NamespaceExtra, ServedExtra } from "../../container/attach/namespace-extra.ts";
import type { NamespaceRunner } from "../../container/namespace/namespace-runner.ts";
import { KernelAnswers } from "./kernel/kernel-answers.ts";
import type { Client } from "../../query/client/client.ts";
import type { QueryObserver } from "../../query/client/clients.ts";
import type { EngineCore, RunCore, Running } from "../contract.ts";
import { answersOf } from "./feature.ts";
import { NamespaceAnswers, Turns } from "./namespace-answers.ts";

export function open({ settings, log, observe, countRepeated, denyCalls }: RunCore): Running {
  const answers = answersOf(settings);
  if (answers === "process") return {};
  const namespaces = new Namespaces();
  observe(namespaces.observer);
  /** Undefined inside of a KIND node: the kernel answers containers only, so its program is not loaded there. */
  let engine: EngineCore | undefined;
  /** How it is for all namespaces; undefined until the run has begun. */
  let report: AnsweredByReport | undefined;
  const load = ({ ruleBackend: { backend }, runner }: EngineCore): AnsweredByReport => {
    const without = (reason: string, error?: Fault): AnsweredByReport => {
      const about = error === undefined ? { reason } : { reason, details: reasonOf(error) };
      // Where the kernel answers if it can, it is no news that it cannot.
      log[answers === "kernel" ? "warn" : "info"](about, "the kernel cannot answer queries, so the process does");
      const remedy = error?.remedy;
      return { by: "process", reason, ...(remedy !== undefined && { remedy }) };
    };
    if (backend !== "nft-owner")
      return without(`the rule backend is ${backend}, whose rules could stay without the program`);
    try {
      const kernelAnswers = loaded(runner);
      kernelAnswers.setStyle(settings.behaviour);
      namespaces.kernelAnswers = kernelAnswers;
      countRepeated(kernelAnswers.kinds);
      return { by: "kernel" };
    } catch (error) {
      // What the verifier says is for the log.
      if (error instanceof Fault && error.remedy !== undefined)
        return without(`${error.message} (Linux ${release()})`, error);
      return without(reasonOf(error));
    }
  };
  return {
    extra: namespaces,
    engine: (core) => void (engine = core),
    start: () => {
      if (engine !== undefined) report = load(engine);
      namespaces.reason = report?.reason;
      if (namespaces.kernelAnswers === undefined) denyCalls(["bpf"]);
    },
    configure: ({ behaviour }) => {
      namespaces.kernelAnswers?.setStyle(behaviour);
      // It goes through all containers, as other things do after a change of settings.
      void ownSlice().then(() => namespaces.retry());
    },
    answersEnd: () => namespaces.kernelAnswers?.forgetAll(),
    inheritedHeld: async () => await namespaces.kernelAnswers?.takePlaces(),
    pause: () => Promise.resolve(namespaces.turns.clear()),
    status: () => (report === undefined ? {} : { answers: report }),
    container: (id) => namespaces.statusOf(id),
    closing: () => namespaces.turns.clear(),
    close: async () => await namespaces.kernelAnswers?.settled(),
  };
}

/** Attached once where nothing is, so that what is missing is found before any container depends on it. */
function loaded(runner: NamespaceRunner): KernelAnswers {
  const kernelAnswers = new KernelAnswers(KERNEL_ANSWER_LIMITS);
  try {
    runner.withinScratch(() => {
      const space = kernelAnswers.open();
      space?.attach();
      space?.close();
    });
    return kernelAnswers;
  } catch (error) {
    kernelAnswers.close();
    throw error;
  }
}

/** The namespaces that are served, with the clients that query from them. */
export class Namespaces implements NamespaceExtra {
  /** Undefined where there is no program on this machine; then the reason. */
  kernelAnswers: KernelAnswers | undefined;
  reason: string | undefined;
  readonly turns = new Turns();
  readonly observer: QueryObserver;
  readonly #clients = new Map<number, Client>();
  /** By container; of one that has started again, the later one. */
  readonly #served = new Map<string, NamespaceAnswers>();

  constructor() {
    this.observer = {
      open: (_, client) => {
        this.#clients.set(client.number, client);
        client.onClose(() => void this.#clients.delete(client.number));
        return undefined;
      },
      close: () => undefined,
    };
  }

  open(place: ExtraPlace): ServedExtra {
    const { containerId } = place;
    const { kernelAnswers, reason, turns } = this;
    const served: NamespaceAnswers = new NamespaceAnswers(place, {
      ...{ kernelAnswers, reason, turns },
      clientOf: (number) => this.#clients.get(number),
      onClose: () => {
        if (this.#served.get(containerId) === served) this.#served.delete(containerId);
      },
    });
    this.#served.set(containerId, served);
    return served;
  }

  /** Where the kernel could not answer, it is tried again now. */
  retry(): void {
    for (const served of this.#served.values()) served.retryNow();
  }

  statusOf(containerId: string): Pick<ContainerStatus, "answers"> {
    const answers = this.#served.get(containerId)?.report;
    return answers === undefined ? {} : { answers };
  }
}
