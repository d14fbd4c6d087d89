/**
 * EngineLink: the engine whose containers are served, and its host. The engine stays the same for the whole run. Its
 * process, and with it the host, may be another one after each reconnection.
 */
import { setTimeout as sleep } from "node:timers/promises";

import type { RunSettings } from "../../config/settings.ts";
import { engineAddress } from "../../api/engine-address.ts";
import { LIMITS } from "../../base/limits.ts";
import { type EngineHost, closeEngineHost, socketPeerPid } from "../../container/namespace/engine-host.ts";
import { openOwnEngineHost } from "../../container/namespace/engine-owner.ts";
import { checkEngine } from "../../container/preflight.ts";
import { Engine, type EngineInfo } from "../../container/watch/engine.ts";
import { backoffMs } from "../../base/lib/retry.ts";
import { Fault, codeOf, reasonOf } from "../../base/lib/fault.ts";
import type { TargetSearch } from "../container-side.ts";

/** What a waiting process also sees while dockerd starts: it makes its socket anew, and then sets who may use it. */
const AWAY_WHILE_IT_STARTS: ReadonlySet<string | undefined> = new Set([
  "ENGINE_AWAY",
  "ENGINE_NO_SOCKET",
  "ENGINE_PERMISSION",
]);

/** The part that the container side needs. */
export type EngineAccess = Pick<EngineLink, "engine" | "info" | "socketPath" | "host" | "accept">;

export class EngineLink {
  readonly engine: Engine;
  readonly socketPath: string;
  readonly #settings: Pick<RunSettings, "enginePid">;
  #info: EngineInfo;
  #host: EngineHost;

  private constructor(engine: Engine, socketPath: string, settings: RunSettings, info: EngineInfo) {
    this.engine = engine;
    this.socketPath = socketPath;
    this.#settings = settings;
    this.#info = info;
    this.#host = this.#openHost(info);
  }

  /** Connects to an engine that already answers. */
  static async open(settings: RunSettings, signal?: AbortSignal): Promise<EngineLink> {
    const { socketPath } = engineAddress(settings.host, process.env);
    const engine = new Engine(socketPath);
    return new EngineLink(engine, socketPath, settings, await engine.describe(signal));
  }

  /**
   * Waits for an engine that is not up yet. Throws if the socket cannot be used at all, because the command is wrong
   * then. Resolves to undefined where the run was stopped first.
   */
  static async waitFor({ settings, log, signal, onWait }: TargetSearch): Promise<EngineLink | undefined> {
    let logged = "";
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        return await EngineLink.open(settings, signal);
      } catch (error) {
        if (signal.aborted) return undefined;
        const code = codeOf(error);
        if (attempt === 0 ? code !== "ENGINE_AWAY" : !AWAY_WHILE_IT_STARTS.has(code)) throw error;
        const reason = reasonOf(error);
        if (reason !== logged) log.warn({ reason }, "waiting for the engine");
        logged = reason;
        onWait(`waiting for the engine: ${reason}`);
        const waitMs = backoffMs(attempt, LIMITS.engineRetryFirstMs, LIMITS.engineRetryLastMs, Math.random());
        await sleep(waitMs, undefined, { signal }).catch(() => undefined);
      }
    }
    return undefined;
  }

  get info(): EngineInfo {
    return this.#info;
  }

  /** The current host. */
  readonly host = (): EngineHost => this.#host;

  /** Must be called after every reconnection: the engine may be another process by then, or even another engine. */
  accept(info: EngineInfo): void {
    if (this.#info.id !== info.id) {
      throw new Fault("ENGINE_OTHER", `Another engine (${info.id}) uses the socket "${this.socketPath}" now`, {
        remedy: "Restart dns11 to serve that engine.",
        isFinal: true,
      });
    }
    const host = this.#openHost(info);
    closeEngineHost(this.#host);
    this.#host = host;
    this.#info = info;
  }

  close(): void {
    closeEngineHost(this.#host);
  }

  #openHost(info: EngineInfo): EngineHost {
    checkEngine(info);
    const pid = this.#settings.enginePid ?? socketPeerPid(this.socketPath);
    return openOwnEngineHost(info, pid);
  }
}
