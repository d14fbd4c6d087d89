/**
 * EngineWay for tests: the container's way of a run with everything real but the engine, which is nowhere: facts are put in by
 * the test itself.
 */
import { settle } from "../../../src/config/settle.ts";
import { Journal } from "../../../src/container/kind/journal.ts";
import type { Bracket } from "../../../src/container/namespace/bracket.ts";
import { closeEngineHost, openEngineHost } from "../../../src/container/namespace/engine-host.ts";
import { Engine } from "../../../src/container/watch/engine.ts";
import { WayCounts } from "../../../src/metrics/way-counts.ts";
import type { Keep } from "../../../src/base/model/held-namespace.ts";
import { createLog } from "../../../src/base/log/log.ts";
import { Repeats } from "../../../src/base/log/repeats.ts";
import { EngineSide } from "../../../src/run/engine/engine-side.ts";
import { previewGround } from "../../../src/run/ground.ts";
import { Quarantines } from "../../../src/run/quarantine/quarantines.ts";
import { composeQuerySide } from "../../../src/run/query-side.ts";

export function composeHere(bracket?: Bracket, keep?: Keep): { readonly way: EngineSide; readonly close: () => void } {
  const run = {
    host: undefined,
    stateDir: "",
    enginePid: undefined,
    isBatching: true,
    isReplacing: false,
    config: undefined,
  };
  const settings = { ...settle([]), ...run };
  const log = createLog("warn");
  const repeats = new Repeats(log);
  const ground = { ...previewGround(), ...(bracket !== undefined && { bracket }) };
  const host = openEngineHost(process.pid);
  const way = new EngineSide(
    {
      settings,
      log,
      repeats,
      ground,
      querySide: composeQuerySide(settings, log, repeats),
      counts: new WayCounts(0),
      journal: new Journal("/nowhere"),
      quarantines: Quarantines.none(),
      keep,
      heir: () => undefined,
      begins: Promise.resolve(),
    },
    {
      engine: new Engine("/nowhere"),
      info: { id: "", name: "", version: "28", majorVersion: 28, apiVersion: "", isRootless: false },
      socketPath: "/nowhere",
      host: () => host,
      accept: () => undefined,
    },
  );
  const close = (): void => {
    way.hostUpstreams.close();
    repeats.close();
    ground.bracket.close();
    closeEngineHost(host);
  };
  return { way, close };
}
