/**
 * The engine's lists of swarm networks, read into the source of these names.
 */
import type { RateLimitedLog } from "../../base/log/rate-limited-log.ts";
import type { SwarmNetworks } from "../../container/names/swarm/swarm-networks.ts";
import type { Engine } from "../../container/watch/engine.ts";
import { SwarmWatch } from "../../container/watch/swarm-watch.ts";

export function openSwarmWatch(engine: Engine, swarm: () => SwarmNetworks, limitedLog: RateLimitedLog): SwarmWatch {
  const watch = new SwarmWatch({
    engine,
    networks: () => swarm().inUse.map(({ id }) => id),
    put: (id, list) => swarm().putList(id, list),
    remove: (id) => swarm().removeList(id),
    onFailed: (reason) => limitedLog.log("warn", "swarm", { reason }, "cannot list the services of a swarm network"),
  });
  swarm().lists.onWanted = (id) => watch.want(id);
  return watch;
}
