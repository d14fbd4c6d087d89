// Names of the measured servers in print order: dns11, as it is and with its answers by the kernel or the process alone,
// dockerd, the other name servers, and the floor, which does the minimum work.

import type { SettingTexts } from "../support/program/dns11.ts";

export const SERVERS = [
  "dns11",
  "kernel",
  "process",
  "dockerd",
  "dnsmasq",
  "unbound",
  "aardvark-dns",
  "floor",
] as const;

export type Server = (typeof SERVERS)[number];

// dns11 in one of its forms: it is started for each turn, and compiled while it runs.
export type Ours = { readonly server: Server; readonly settings: SettingTexts; readonly env?: NodeJS.ProcessEnv };

export const DNS11: Ours = { server: "dns11", settings: {} };
