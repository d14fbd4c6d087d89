// The settings of etcd where none is set, and how containers are published where nothing else is said.

import { mergeSettings } from "../../../src/config/merge-settings.ts";
import { type PublishPolicy, etcdOf } from "../../../src/features/etcd/feature.ts";

export const ETCD_DEFAULTS = etcdOf(mergeSettings([]));

export const PUBLISH_DEFAULTS: Omit<PublishPolicy, "zone" | "machine"> = {
  addresses: [],
  routedNetworks: [],
  leaseSeconds: 30,
  isNearestFirst: false,
};
