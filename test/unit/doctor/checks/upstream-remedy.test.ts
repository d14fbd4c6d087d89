// Proves that each server's remedy names the place where it is set.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { ContainerFact } from "../../../../src/container/facts/fact.ts";
import { serverRemedy } from "../../../../src/doctor/checks/upstream-remedy.ts";
import { aContainer } from "../../../support/scripted/builders.ts";

const LISTED = [{ address: "10.0.0.1", file: "/etc/resolv.conf", line: 3 }];
const COMPOSED = {
  "com.docker.compose.project": "shop",
  "com.docker.compose.service": "web",
  "com.docker.compose.project.config_files": "/srv/shop/compose.yaml",
};

function remedy(
  from: "host" | "container",
  address: string,
  fact?: Partial<ContainerFact>,
  settingsFile?: string,
): string {
  const container = fact === undefined ? undefined : aContainer({ name: "web", ...fact });
  return serverRemedy({ from, address, port: 53 }, { fact: container, listed: LISTED, settingsFile });
}

test("a server of the host's file, of a container, of dockerd and of dns11", () => {
  const given = (isOwn: boolean, labels: Record<string, string> = {}): Partial<ContainerFact> => ({
    labels,
    nameservers: { kind: "listed", isOwn, isNdotsSet: false, servers: [{ from: "container", address: "10.0.0.2" }] },
  });
  const label = { "io.dns11.dns": "10.0.0.9" };
  const host = { nameservers: { kind: "host", isNdotsSet: false } } as const;
  const captured = {
    nameservers: { kind: "captured", isNdotsSet: false, followsHost: false, servers: ["10.0.0.1"] },
  } as const;
  const inFile = "Replace nameserver 10.0.0.1 in line 3 of /etc/resolv.conf on the Docker host";
  for (const [found, expected] of [
    [remedy("host", "10.0.0.1"), `${inFile}.`],
    [remedy("host", "10.0.0.1", host), `${inFile}.`],
    [remedy("container", "10.0.0.1", captured), `${inFile}, and restart web.`],
    [remedy("container", "10.0.0.2", captured), "Create web again with another docker run --dns."],
    [
      remedy("container", "10.0.0.2", given(true)),
      "Create web again with another docker run --dns: Docker cannot change it.",
    ],
    [
      remedy("container", "10.0.0.2", given(true, COMPOSED)),
      "Replace or remove 10.0.0.2 (services.web.dns in /srv/shop/compose.yaml), then create the container again with docker compose up -d.",
    ],
    [
      remedy("container", "10.0.0.2", given(false)),
      'Replace 10.0.0.2 in "dns" of dockerd (daemon.json or --dns), and start it again.',
    ],
    [remedy("host", "10.0.0.9", { ...host, labels: label }), "Change the label io.dns11.dns of web."],
    [remedy("host", "10.0.0.7", host), "Replace 10.0.0.7 in --dns of dns11 run, and start it again."],
    [
      remedy("host", "10.0.0.7", host, "/etc/dns11.yaml"),
      "Replace 10.0.0.7 in /etc/dns11.yaml, then run: dns11 reload",
    ],
  ] as const)
    assert.equal(found, expected);
});
