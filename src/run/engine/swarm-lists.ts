/**
 * The engine's lists of swarm networks, read into the source of these names.
 */
import type { RateLimitedLog } from "../../base/log/rate-limited-log.ts";
import type { Engine } from "../../container/watch/engine.ts";
import { SwarmWatch } from "../../container/watch/swarm-watch.ts";
import type { Directory } from "../../container/registry/directory.ts";

export function openSwarmWatch(
  engine: Engine,
  swarm: () => Directory["swarm"],
  limitedLog: RateLimitedLog,
  onNames: () => void,
): SwarmWatch {
  const watch = new SwarmWatch({
    engine,
    networks: () => swarm().inUse.map(({ id }) => id),
    put: (id, list) => {
      swarm().lists.put(id, list);
      onNames();
    },
    remove: (id) => {
      swarm().lists.remove(id);
      onNames();
    },
    onFailed: (reason) => limitedLog.log("warn", "swarm", { reason }, "cannot list the services of a swarm network"),
  });
  swarm().lists.onWanted = (id) => watch.want(id);
  return watch;
}
