import { featureValues } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";
import { openHostNetwork } from "../../container/namespace/engine-host.ts";
import { closeQuietly } from "../../kernel/libc.ts";
import type { Family } from "../../metrics/exposition.ts";
import { counter, gauge, sample } from "../../metrics/family.ts";
import type { RunCore, Running } from "../contract.ts";
import { AnsweredTables } from "./answered-names.ts";
import { EGRESS } from "./feature.ts";
import { Recording } from "./recording.ts";
import { egressRoutes } from "./report.ts";

export function open({ settings: first, onNames, observe }: RunCore): Running {
  const answered = new AnsweredTables();
  observe(answered);
  /** Undefined inside of a KIND node. */
  let recording: Recording | undefined;
  const configure = (settings: Settings): void => {
    const { egress: isOn } = featureValues(EGRESS.settings, settings);
    answered.configure(isOn, settings.queries.names);
    // What is repeated without the process would not be noted.
    if (isOn && recording?.isOn === false) onNames();
    void recording?.setOn(isOn);
  };
  return {
    engine: ({ links, directory, host, runner, memory }) => {
      recording = new Recording({
        links,
        containers: () => directory().containers.values(),
        networkId: () => host().networkId,
        openNetns: () => {
          const fd = openHostNetwork(host());
          return { netns: runner.namespaceOf(fd, memory), close: () => closeQuietly(fd) };
        },
        namesOf: (id, address, untilMs) => answered.of(id, address, untilMs),
      });
    },
    start: () => configure(first),
    configure,
    put: (fact) => recording?.put(fact),
    remove: (id) => recording?.remove(id),
    engineConnected: () => void recording?.hostChanged(),
    routes: (ports) => egressRoutes(ports, recording, () => answered.hasNames),
    metrics: () => (recording?.readings === undefined ? [] : familiesOf(recording.readings)),
    close: () => recording?.close(),
  };
}

type Readings = NonNullable<Recording["readings"]>;

function familiesOf({ asked, unasked, recorded, incomplete }: Readings): Family[] {
  return [
    counter(
      "dns11_egress_connections_total",
      "Connections of containers: to addresses that they were answered with, and to others. Read every 30 s.",
      [sample(asked, { name: "asked" }), sample(unasked, { name: "none" })],
    ),
    gauge("dns11_egress_containers", "Containers whose connections are recorded.", [
      sample(recorded - incomplete, { state: "complete" }),
      sample(incomplete, { state: "incomplete" }),
    ]),
  ];
}
