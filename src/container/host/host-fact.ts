/**
 * HostFact: the host as one more container, so that status, explain and lookup can name it.
 */
import type { ContainerFact } from "../facts/fact.ts";

/** Its name and its id; engines give containers ids of 64 hexadecimal digits. */
export const HOST_ID = "host";

export const HOST_FACT: ContainerFact = {
  id: HOST_ID,
  name: HOST_ID,
  labels: {},
  imageLabels: { labels: {}, source: "known" },
  startedAt: "",
  isPaused: false,
  pid: 0,
  sandboxKey: "",
  networkMode: "host",
  hostname: "",
  domainName: "",
  ports: { published: [], exposed: [], ofImage: [] },
  resolvConfPath: undefined,
  kindSearch: undefined,
  extraHosts: [],
  health: undefined,
  nameservers: { kind: "host", isNdotsSet: false },
  endpoints: [],
  onDefaultBridge: undefined,
};
