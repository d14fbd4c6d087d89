/**
 * Container names on a host where systemd-resolved is in charge: it asks dns11 through a link of dns11's own. Names
 * resolve for every program that asks it, by whatever way, exactly while dns11 runs, and other names always do.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { type Container, createNetwork, runContainer } from "../../support/engine/container.ts";
import { type Engine, startEngine } from "../../support/engine/engine.ts";
import { run, stdoutOf } from "../../support/program/command.ts";
import { dataOf, dig } from "../../support/client/dig.ts";
import { HostClients } from "../../support/client/host-clients.ts";
import { HostLoad, assertNoneFailed } from "./host-load.ts";
import { type Dns11, dns11, replaceDns11, startDns11 } from "../../support/program/dns11.ts";
import {
  type Release,
  type RootProgram,
  STUB,
  type SystemBus,
  startNetworkd,
  startResolved,
  startSystemBus,
  writeIn,
} from "./resolved.ts";
import { type Upstream, startUpstream } from "../../support/servers/upstream.ts";
import { withoutIpv6 } from "../../support/rig/netns.ts";
import { waitFor } from "../../support/rig/wait.ts";

const UPSTREAM = "10.53.0.1";
/** What has the domain "box": a file below /etc/systemd, and how the reason calls it. */
const OWNERS: Readonly<Record<Release, readonly [file: string, text: string, place: string]>> = {
  bookworm: ["resolved.conf.d/box.conf", "[Resolve]\nDomains=~box\n", "its configuration"],
  forky: ["dns-delegate.d/box.dns-delegate", `[Delegate]\nDNS=${UPSTREAM}\nDomains=box\n`, "its delegate box"],
};

let engine: Engine;
let clients: HostClients;
let upstream: Upstream;
let bus: SystemBus;
let resolved: RootProgram;
let web: Container;
let address: string;
let config: string;
/** What is below /etc/systemd. */
let files: string;

before(async () => {
  engine = await startEngine({
    suite: "bookworm",
    hasControlGroup: true,
    liveRestore: true,
    resolvConf: `nameserver ${STUB}\n`,
  });
  upstream = await startUpstream(engine, { address: UPSTREAM });
  clients = await HostClients.prepare(engine);
  await createNetwork(engine, "n1", { subnet: "172.30.16.0/20" });
  await createNetwork(engine, "n2");
  const labels = {
    "io.dns11.project": "shop",
    "io.dns11.service": "front",
    "com.docker.compose.container-number": "1",
  };
  web = await runContainer(engine, { name: "web", labels, networks: ["n1"] });
  await runContainer(engine, { name: "other", networks: ["n2"] });
  config = join(engine.folder, "settings.yaml");
  address = (await engine.docker("inspect", "-f", "{{.NetworkSettings.Networks.n1.IPAddress}}", "web")).trim();
});
after(async () => {
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
});

async function onHost(...words: string[]): Promise<string> {
  return stdoutOf(await run("nsenter", ["--target", String(engine.hostPid), "--mount", "--", ...words]), "host");
}

async function stub(...words: string[]): Promise<string[]> {
  return dataOf(await dig(engine, `@${STUB}`, ...words));
}

async function links(): Promise<string[]> {
  const { stdout } = await engine.enter("ip", ["-o", "link"]);
  return [...stdout.matchAll(/dns11-\d+/g)].map(([name]) => name);
}

async function start(): Promise<Dns11> {
  const instance = await startDns11(engine, { args: ["--host-names"] });
  await instance.waitFor("host", "attached");
  return instance;
}

async function meansOf(instance: Dns11): Promise<string> {
  const { hostNames } = (await instance.container("host")) ?? {};
  return `${hostNames?.means}: ${hostNames?.why}`;
}

let asked = 0;
/** Never from a cache. */
async function assertOutside(): Promise<void> {
  const number = (asked = (asked % 200) + 1);
  const name = `a${number}.ok.test`;
  assert.match(await bus.lookup(name), new RegExp(`^192\\.0\\.2\\.${number} `), `${name} by nss-resolve`);
}

/** With further lines of settings. */
async function reload(instance: Dns11, lines = ""): Promise<void> {
  writeFileSync(config, `version: 1\nhost-names: auto\n${lines}`);
  stdoutOf(await dns11(["reload", "-H", engine.host, "--state-dir", instance.stateDir]), "reload");
}

async function assertEndsWell(instance: Dns11, signal: NodeJS.Signals): Promise<void> {
  await waitFor("its keeper", async () => (await instance.status()).keeper.pid ?? undefined);
  assert.match(await bus.lookup("web.docker"), new RegExp(`^${address} `));
  await using load = await HostLoad.start(engine, "a1.ok.test", "web.docker");
  instance.kill(signal);
  await waitFor("the link to go", async () => ((await links()).length === 0 ? true : undefined));
  await assertOutside();
  await waitFor("the rules to go", async () =>
    (await engine.enter("nft", ["list", "tables"])).stdout.includes("dns11") ? undefined : true,
  );
  await upstream.forget();
  await waitFor("the name to be upstream's", async () => ((await stub("web.docker")).length === 0 ? true : undefined));
  assert.deepEqual(await clients.lookup("web.docker"), clients.all());
  assert.ok((await upstream.queriesFor("web.docker")).length > 0);
  assert.deepEqual(await clients.lookup("a8.ok.test"), clients.all("192.0.2.8"));
  const { outside, dropped } = await load.stop();
  assertNoneFailed(outside, dropped);
}

for (const release of ["bookworm", "forky"] as const) {
  describe(`systemd-resolved of ${release}`, () => {
    const folderOf = (name: string): string => join(engine.folder, `${release}-${name}`);
    before(async () => {
      const [file, text] = OWNERS[release];
      files = writeIn(folderOf("files"), file, text);
      bus = await startSystemBus(engine, release);
      resolved = await startResolved(engine, UPSTREAM, [], bus, files);
    });
    after(async () => {
      await resolved[Symbol.asyncDispose]();
      await bus[Symbol.asyncDispose]();
    });

    /** The state of our link, in the words of systemd-networkd. */
    async function networkdState(): Promise<string> {
      const { stdout } = await bus.command("networkctl", "--no-pager", "--no-legend", "list");
      return /dns11-\d+.*/.exec(stdout)?.[0] ?? "";
    }

    describe("with one instance", () => {
      let instance: Dns11;
      /** The first one, and the one that replaces it. */
      const instances: Dns11[] = [];
      before(async () => {
        writeFileSync(config, "version: 1\nhost-names: auto\nhost-domain: box\n");
        instances.push((instance = await startDns11(engine, { args: ["--config", config] })));
      });
      after(async () => {
        for (const each of instances.toReversed()) await each[Symbol.asyncDispose]();
      });

      test("a domain that the configuration of systemd-resolved has is refused", async () => {
        const { reason = "" } = await instance.waitFor("host", "skipped");
        const expected = `systemd-resolved already has the domain "box": ${OWNERS[release][2]}. Choose`;
        assert.ok(reason.includes(expected), reason);
        await reload(instance);
        await instance.waitFor("host", "attached");
      });

      test("glibc, musl, static Go and Node resolve names of containers and others", async () => {
        assert.equal(await meansOf(instance), "resolved: its stub is in /etc/resolv.conf");
        assert.deepEqual(await clients.lookup("api.web.docker"), clients.all(address));
        assert.deepEqual(await clients.lookup("a6.ok.test"), clients.all("192.0.2.6"));
        assert.deepEqual(await clients.lookup("nobody.docker"), clients.all());
        assert.match(await bus.lookup("web.docker"), new RegExp(`^${address} `), "nss-resolve");
        await assertOutside();
      });

      test("under load, no name is lost while dockerd is restarted", async () => {
        await using load = await HostLoad.start(engine, "a1.ok.test", "web.docker");
        await engine.restartDaemon();
        await createNetwork(engine, `${release}-after`);
        await instance.waitFor("host", "attached");
        assert.deepEqual(await clients.lookup("web.docker"), clients.all(address));
        const { outside, inside, dropped } = await load.stop();
        assertNoneFailed(outside, dropped);
        assertNoneFailed(inside, dropped);
      });

      test("under load, names come back when systemd-resolved is restarted", async () => {
        await using load = await HostLoad.start(engine, "a1.ok.test", "web.docker");
        await resolved[Symbol.asyncDispose]();
        resolved = await startResolved(engine, UPSTREAM, [], bus, files);
        await waitFor("the name", async () => ((await stub("web.docker"))[0] === address ? true : undefined));
        const backMs = Date.now();
        await assertOutside();
        assert.deepEqual(await clients.lookup("api.web.docker"), clients.all(address));
        const { outside, inside, dropped } = await load.stop();
        assertNoneFailed(outside, dropped, backMs);
        assertNoneFailed(inside, dropped, backMs);
      });

      test("systemd-networkd leaves the link alone", async () => {
        const others = writeIn(folderOf("networkd"), "network/10-en.network", "[Match]\nName=en*\n");
        await using _ = await startNetworkd(bus, others);
        await waitFor("the link's state", async () => (/unmanaged/.test(await networkdState()) ? true : undefined));
        await reload(instance);
        assert.deepEqual(await clients.lookup("web.docker"), clients.all(address));
        assert.match(await meansOf(instance), /^resolved/);
      });

      test("when IPv6 is switched off, the link gets an IPv4 address", async () => {
        const addresses = async (): Promise<string> => (await engine.enter("ip", ["-o", "address", "show"])).stdout;
        assert.match(await addresses(), /dns11-\d+ +inet6 fd64:6e73:3131::1/);
        await withoutIpv6(engine, async () => {
          await reload(instance);
          await waitFor("the name by the new link", async () =>
            /dns11-\d+ +inet 192\.0\.0\.8/.test(await addresses()) && (await stub("web.docker"))[0] === address
              ? true
              : undefined,
          );
          assert.equal((await links()).length, 1);
          await assertOutside();
        });
      });

      if (release === "bookworm") {
        test("every program that asks systemd-resolved gets names of containers, and other names as before", async () => {
          assert.equal(await meansOf(instance), "resolved: its stub is in /etc/resolv.conf");
          for (const name of ["web.docker", "api.web.docker", "web.n1.docker"]) {
            assert.match(await bus.lookup(name), new RegExp(`^${address} `), `${name} by nss-resolve`);
            assert.deepEqual(await stub(name), [address], `${name} at the stub`);
            assert.deepEqual(await stub("+tcp", name), [address], `${name} at the stub by TCP`);
            const text = stdoutOf(await bus.command("resolvectl", "query", "--legend=no", name), "resolvectl");
            assert.ok(text.includes(`${name}: ${address}`), text);
          }
          assert.match(await bus.lookup(address), /web\.docker/);
          assert.deepEqual(await stub("-x", address), ["web.docker."]);
          assert.equal(await bus.lookup("nobody.docker"), "");
          assert.equal((await dig(engine, `@${STUB}`, "nobody.docker")).status, "NXDOMAIN");
          await upstream.forget();
          await assertOutside();
          assert.deepEqual(await stub("a7.ok.test"), ["192.0.2.7"]);
          const foreign = address.replace(/\d+$/, "250");
          await stub("-x", foreign);
          const reverse = `${foreign.split(".").toReversed().join(".")}.in-addr.arpa`;
          assert.ok((await upstream.queriesFor(reverse)).length > 0, "a reverse name of nobody is forwarded");
          assert.deepEqual(await upstream.queriesFor("web.docker"), []);
        });

        test("names follow containers and networks", async () => {
          await createNetwork(engine, "late", { subnet: "10.99.4.0/22" });
          await using late = await runContainer(engine, {
            name: "late-comer",
            networks: [{ name: "late", ip: "10.99.6.7" }],
          });
          await waitFor("the new name", async () =>
            (await bus.lookup("late-comer.docker")).startsWith("10.99.6.7 ") ? true : undefined,
          );
          await waitFor("its reverse name", async () =>
            (await stub("-x", "10.99.6.7"))[0] === "late-comer.docker." ? true : undefined,
          );
          await late.remove();
          await waitFor("the name to go", async () =>
            (await bus.lookup("late-comer.docker")) === "" ? true : undefined,
          );
        });

        test("containers do not see the names of the host, though dns11 asks systemd-resolved for them", async () => {
          await upstream.forget();
          assert.deepEqual(dataOf(await dig(web, "a9.ok.test")), ["192.0.2.9"]);
          assert.equal((await dig(web, "other.docker")).status, "NXDOMAIN");
          const other = (await stub("other.docker"))[0] ?? "";
          assert.equal((await dig(web, "-x", other)).status, "NXDOMAIN");
          assert.deepEqual(dataOf(await dig(web, "-x", address)), ["web.n1."]);
          assert.deepEqual(await upstream.queriesFor("other.docker"), []);
        });

        test("status, explain and the doctor say which means serve the host, and why", async () => {
          const of = async (...words: string[]): Promise<string> => {
            const { stdout, stderr } = await dns11([...words, "-H", engine.host, "--state-dir", instance.stateDir]);
            return stdout + stderr;
          };
          assert.match(await of("status", "host"), /through systemd-resolved \(its stub is in \/etc\/resolv\.conf\)/);
          assert.match(await of("explain", "web.docker", "-v", "--in", "host"), /docker, through systemd-resolved/);
          assert.match(
            await of("doctor", "--all"),
            /names below "docker" resolve on this machine through systemd-resolved/,
          );
        });

        test("another process continues with the same names when dns11 is replaced", async () => {
          const [link] = await links();
          const first = instance;
          const second = await replaceDns11(engine, first, { args: ["--config", config] });
          instances.push((instance = second));
          await waitFor("the link of the new process alone", async () => {
            const now = await links();
            return now.length === 1 && now[0] !== link ? true : undefined;
          });
          assert.equal(await first.ended(), 0);
          await second.waitFor("host", "attached");
          await waitFor("the name", async () => ((await stub("web.docker"))[0] === address ? true : undefined));
          await assertOutside();
        });

        test("names of a zone resolve for every program that asks systemd-resolved, one that another link has does not; no other name is lost", async () => {
          const ours = await links();
          await using load = await HostLoad.start(engine, "a1.ok.test", "web.docker");
          stdoutOf(await engine.enter("ip", ["link", "add", "vpn1", "type", "bridge"]), "ip");
          stdoutOf(await bus.command("resolvectl", "domain", "vpn1", "~corp.test"), "resolvectl");
          await reload(instance, "zone: [cluster.local, corp.test]\n");
          const warning = await waitFor("the warning", async () => (await instance.container("host"))?.warning);
          assert.match(warning, /zone "corp\.test" does not resolve on the host: .*its link vpn1/);
          assert.deepEqual((await instance.container("host"))?.hostNames?.zones, ["cluster.local"]);
          const name = "front.shop.svc.cluster.local";
          await waitFor("the zone at the stub", async () => ((await stub(name))[0] === address ? true : undefined));
          assert.match(await bus.lookup(name), new RegExp(`^${address} `));
          assert.deepEqual(await stub("+tcp", name), [address]);
          assert.match(await bus.lookup(address), /1\.front\.shop\.svc\.cluster\.local/);
          assert.deepEqual(await stub("web.docker"), [address]);
          await reload(instance);
          await waitFor("the zone to go", async () => ((await stub(name)).length === 0 ? true : undefined));
          assert.deepEqual(await stub("web.docker"), [address]);
          assert.deepEqual(await links(), ours, "it is the same link");
          const { outside, inside, dropped } = await load.stop();
          assertNoneFailed(outside, dropped);
          assertNoneFailed(inside, dropped);
          stdoutOf(await engine.enter("ip", ["link", "del", "vpn1"]), "ip");
          await assertOutside();
        });

        test("a second instance and another link with the domain are found, and nothing breaks", async () => {
          await using second = await startDns11(engine, { args: ["--host-names"] });
          const { code } = await second.waitFor("host", "failed");
          assert.equal(code, "OWNED_ELSEWHERE");
          assert.deepEqual(await stub("web.docker"), [address]);
          stdoutOf(await engine.enter("ip", ["link", "add", "vpn0", "type", "bridge"]), "ip");
          stdoutOf(await bus.command("resolvectl", "domain", "vpn0", "~vpn"), "resolvectl");
          await using third = await startDns11(engine, { args: ["--host-names"], settings: { "host-domain": "vpn" } });
          const { reason = "" } = await third.waitFor("host", "skipped");
          assert.match(reason, /systemd-resolved already has the domain "vpn": its link vpn0\. Choose another domain/);
          stdoutOf(await engine.enter("ip", ["link", "del", "vpn0"]), "ip");
          await assertOutside();
        });
      }

      test("SIGKILL under load: no outside name is lost, and names of the domain go upstream", async () => {
        await assertEndsWell(instance, "SIGKILL");
      });
    });

    if (release !== "bookworm") return;

    test("where systemd-networkd manages the link, the reason says what to do, and auto captures", async () => {
      const broad = "[Match]\nName=dns11-*\n[Network]\nLinkLocalAddressing=no\n";
      await using _ = await startNetworkd(bus, writeIn(folderOf("broad"), "network/10-all.network", broad));
      {
        await using instance = await startDns11(engine, { args: ["--host-names"] });
        await waitFor("the other means", async () =>
          (await meansOf(instance)).startsWith("capture") ? true : undefined,
        );
        // The means are known before they are in force.
        await instance.waitFor("host", "attached");
        assert.match(await meansOf(instance), /systemd-resolved refused \w+: Link dns11-\d+ is managed/);
        assert.deepEqual(await stub("web.docker"), [address]);
        await assertOutside();
      }
      await using other = await startDns11(engine, { args: ["--host-names=resolved"] });
      const { reason = "" } = await other.waitFor("host", "failed");
      assert.match(reason, /is managed.*Exclude links called dns11-\* where systemd-networkd manages them/);
    });

    for (const signal of ["SIGTERM", "SIGSTOP"] as const) {
      test(`${signal} under load, without IPv6: the same`, async () => {
        await withoutIpv6(engine, async () => {
          await using instance = await start();
          await assertEndsWell(instance, signal);
        });
      });
    }

    test("without a TUN device the reason says what to do, and auto captures instead", async () => {
      await onHost("mount", "--bind", "/dev/null", "/dev/net/tun");
      try {
        writeFileSync(config, "version: 1\nhost-names: resolved\n");
        await using instance = await startDns11(engine, { args: ["--config", config] });
        const { reason = "" } = await instance.waitFor("host", "skipped");
        assert.match(reason, /Cannot make a network link for systemd-resolved.*Allow \/dev\/net\/tun/);
        await assertOutside();
        await reload(instance);
        await instance.waitFor("host", "attached");
        assert.match(await meansOf(instance), /^capture: Cannot make a network link/);
        assert.deepEqual(await stub("web.docker"), [address]);
      } finally {
        await onHost("umount", "/dev/net/tun");
      }
    });

    test("where systemd-resolved does not run, the reason says so", async () => {
      await resolved[Symbol.asyncDispose]();
      await using instance = await startDns11(engine, { args: ["--host-names=resolved"] });
      const { reason = "" } = await instance.waitFor("host", "skipped");
      assert.match(reason, /systemd-resolved does not run on this host\. Start systemd-resolved, or use --host-names/);
      resolved = await startResolved(engine, UPSTREAM, [], bus, files);
      await instance.waitFor("host", "attached");
    });
  });
}
