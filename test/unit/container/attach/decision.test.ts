// Proves which containers are served, and the code for a container that is not.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type OnlyFilter, parseOnly } from "../../../../src/base/model/container-choice.ts";
import { type Decision, ENABLE_LABEL, decide } from "../../../../src/container/attach/decision.ts";
import type { ContainerFact } from "../../../../src/container/facts/fact.ts";
import { DNS_LABEL } from "../../../../src/container/registry/label-routes.ts";
import type { Labels } from "../../../../src/container/facts/labels.ts";
import { LABEL_DEFAULTS } from "../../../../src/base/model/name-choices.ts";
import { aContainer, anEndpoint } from "../../../support/scripted/builders.ts";

const ON_BRIDGE = anEndpoint({ networkName: "bridge" });

test("a container whose runtime has a network stack of its own is not served in its namespace", () => {
  const codeOf = (runtime: string): string | undefined => {
    const decision = decide(aContainer({ runtime }), []);
    return decision.kind === "skip" ? decision.code : undefined;
  };
  for (const runtime of ["runsc", "runsc-kvm", "io.containerd.runsc.v1", "kata", "kata-qemu", "my-gvisor", "Kata_2"])
    assert.equal(codeOf(runtime), "own-stack", runtime);
  for (const runtime of ["runc", "io.containerd.runc.v2", "crun", "sysbox-runc", "katana", "nvidia"])
    assert.equal(codeOf(runtime), undefined, runtime);
});

test("a container on a user-defined network is served", () => {
  assert.deepEqual(decided({}), { kind: "serve" });
  assert.deepEqual(decided({ endpoints: [ON_BRIDGE, anEndpoint()], networkMode: "bridge" }), { kind: "serve" });
  assert.deepEqual(decided({ isPaused: true }), { kind: "serve" });
});

const SKIPPED: Readonly<Record<string, readonly [Partial<ContainerFact>, string, RegExp]>> = {
  "on the host's network": [{ networkMode: "host", endpoints: [] }, "host-network", /host's network/],
  "in another container's namespace": [
    { networkMode: "container:0123456789abcdef", endpoints: [] },
    "shares-namespace",
    /container 0123456789ab /,
  ],
  "without a network": [
    { networkMode: "none", endpoints: [anEndpoint({ networkName: "none" })] },
    "no-network",
    /no network/,
  ],
  "on the default bridge alone": [
    { networkMode: "default", endpoints: [ON_BRIDGE] },
    "default-network-only",
    /127\.0\.0\.11/,
  ],
  "with endpoints nowhere yet": [{ endpoints: [] }, "default-network-only", /no user-defined network/],
  "that opted out": [{ labels: { [ENABLE_LABEL]: "false" } }, "opted-out", /io\.dns11\.enable/],
};

for (const [what, [parts, code, reason]] of Object.entries(SKIPPED)) {
  test(`a container ${what} is skipped, as "${code}"`, () => {
    const decision = decided(parts);
    assert.ok(decision.kind === "skip" && decision.code === code);
    assert.match(decision.reason, reason);
  });
}

test("the default bridge is served where the setting says so, at the servers of a resolv.conf that can be captured", () => {
  const onDefaultBridge = { names: ["web"], links: [], ipv4: "172.17.0.2", ipv6: undefined };
  const bridged = { networkMode: "default", endpoints: [ON_BRIDGE], onDefaultBridge };
  const captured = (...servers: string[]): ContainerFact["nameservers"] => ({
    kind: "captured",
    servers,
    isNdotsSet: false,
    followsHost: false,
  });
  const under = (setting: "off" | "names", nameservers: ContainerFact["nameservers"]): string => {
    const fact = aContainer({ ...bridged, nameservers });
    const decision = decide(fact, [], LABEL_DEFAULTS, setting);
    return decision.kind === "serve" ? "serve" : `${decision.code}: ${decision.reason}`;
  };
  assert.equal(under("names", captured("10.0.0.1")), "serve");
  assert.match(under("names", captured()), /^no-nameserver: its resolv\.conf names no nameserver/);
  assert.match(under("names", { kind: "unknown" }), /^no-nameserver: its resolv\.conf cannot be read/);
  assert.match(under("off", captured("10.0.0.1")), /^default-network-only: .*default-bridge: names/);
});

test("a container that started on the default network and joined another one later is served", () => {
  assert.equal(decided({ networkMode: "none", endpoints: [anEndpoint()] }).kind, "serve");
});

test("a container in the host's or another container's namespace is skipped, whatever its labels", () => {
  const labels = { [ENABLE_LABEL]: "perhaps" };
  for (const networkMode of ["host", "container:abc"]) {
    assert.equal(decided({ networkMode, labels }).warning, undefined);
  }
});

for (const word of ["true", "1", "yes", "on", "TRUE", " On "]) {
  test(`a label of "${word}" serves, like no label`, () => {
    assert.deepEqual(decided({ labels: { [ENABLE_LABEL]: word } }), { kind: "serve" });
  });
}

for (const word of ["false", "0", "no", "off", "False", " off "]) {
  test(`a label of "${word}" opts out`, () => {
    const decision = decided({ labels: { [ENABLE_LABEL]: word } });
    assert.ok(decision.kind === "skip" && decision.code === "opted-out");
  });
}

for (const word of ["", "maybe", "2", "truefalse"]) {
  test(`a label of "${word}" is ignored, with a warning that quotes it`, () => {
    const labels = { [ENABLE_LABEL]: word };
    const decision = decided({ labels });
    assert.equal(decision.kind, "serve");
    assert.ok(decision.warning?.includes(`"${word}"`));
    assert.equal(decided({ labels, endpoints: [ON_BRIDGE] }).warning, decision.warning);
  });
}

test("an image may opt out; its other labels cause a warning and apply only if images are trusted", () => {
  const image = (labels: Labels): Partial<ContainerFact> => ({ imageLabels: { labels, source: "known" } });
  const out = decided(image({ [ENABLE_LABEL]: "no" }));
  assert.ok(out.kind === "skip" && out.reason === `its image's label ${ENABLE_LABEL} disables dns11`);
  assert.equal(decided({ ...image({}), labels: { [ENABLE_LABEL]: "yes" } }).kind, "serve");
  assert.deepEqual(decided(image({ [ENABLE_LABEL]: "true" })), { kind: "serve" });
  const dns = decided(image({ [DNS_LABEL]: "10.0.0.1" }));
  assert.equal(dns.kind, "serve");
  assert.match(dns.warning ?? "", /^label io\.dns11\.dns of the image is ignored/);
  const only = [parseOnly("label=tier") ?? assert.fail()];
  const unnamed = decided(image({ tier: "web" }), only);
  assert.ok(unnamed.kind === "skip" && unnamed.code === "not-selected");
  assert.match(unnamed.warning ?? "", /^label tier of the image is ignored/);
  const trusted = { ...LABEL_DEFAULTS, trustsImages: true };
  const labels = { tier: "web", [DNS_LABEL]: "10.0.0.1" };
  assert.deepEqual(decide(aContainer(image(labels)), only, trusted), { kind: "serve" });
});

test("a long invalid label is quoted in short", () => {
  assert.ok((decided({ labels: { [ENABLE_LABEL]: "x".repeat(1_000_000) } }).warning ?? "").length < 300);
});

const LABELS = { tier: "web", empty: "" };

// Filters, and whether they match a container on networks "one" and "bridge" with those labels.
for (const [filters, isSelected] of [
  [[], true],
  [["label=tier"], true],
  [["label=tier=web"], true],
  [["label=tier=db"], false],
  [["label=tier="], false],
  [["label=empty"], true],
  [["label=empty="], true],
  [["label=other"], false],
  [["label=constructor"], false],
  [["label=tier", "label=other"], false],
  [["label=tier", "label=empty"], true],
  [["network=one"], true],
  [["network=two"], false],
  [["network=two", "network=one"], true],
  [["network=bridge"], true],
  [["network=One"], false],
  [["network=one", "label=tier=web"], true],
  [["network=one", "label=tier=db"], false],
  [["network=two", "label=tier=web"], false],
] as const) {
  test(`"${filters.join(" ")}" ${isSelected ? "matches" : "does not match"} the container`, () => {
    const only = filters.map((text): OnlyFilter => parseOnly(text) ?? assert.fail());
    const decision = decided({ labels: LABELS, endpoints: [anEndpoint(), ON_BRIDGE] }, only);
    assert.equal(decision.kind === "skip" ? decision.code : decision.kind, isSelected ? "serve" : "not-selected");
  });
}

function decided(parts: Partial<ContainerFact>, only: readonly OnlyFilter[] = []): Decision {
  return decide(aContainer(parts), only);
}
