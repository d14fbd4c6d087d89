// Proves what reports of failures say beside the cause and its fix: what failed while servers were down stays what it was, a loop of ends
// and starts is the same in both states, and a container whose programs do not ask dns11 is told so first.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";

import { dig } from "../../support/client/dig.ts";
import { type Container, runContainer } from "../../support/engine/container.ts";
import { stdoutOf } from "../../support/program/command.ts";
import { inNetns } from "../../support/rig/netns.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { startDnsmasq } from "../../support/servers/real-server.ts";
import { startUpstream } from "../../support/servers/upstream.ts";
import { Shop, unwrapped } from "./shop.ts";

let shop: Shop;
let web: Container;

before(async () => {
  shop = await Shop.open();
  web = await shop.service("web", ["shop_front"]);
});
after(async () => await shop[Symbol.asyncDispose]());

test("what failed while all servers were down is not said to be broken afterwards", async () => {
  await using client = await shop.service("outside", ["shop_front"]);
  await shop.upstream[Symbol.asyncDispose]();
  try {
    await shop.causeIn(client.name, "upstreams-down", async () => await dig(client, "+time=1", "b.ok.test"));
  } finally {
    shop.upstream = await startUpstream(shop.engine);
  }
  await shop.resolves(web, "c.ok.test");
  const only = (await shop.failures(client.name)).failures.find(({ name }) => name === "b.ok.test");
  assert.deepEqual([only?.cause?.code, only?.earlier], ["upstreams-down", "recovered"], "as it was");
  const { stdout } = await shop.command("doctor", client.name);
  assert.doesNotMatch(stdout, /does not resolve|may be broken/);
});

test("a container that ends and is started again, over and over, in both states", async () => {
  const keys = { restart: "always" };
  await using crashing = await shop.service("crash", ["shop_front"], { isShort: true, keys });
  const seen = new Set<string>();
  // Docker waits for longer each time, so that in the end both states last.
  await waitFor("its cause while it runs and while it does not", async () => {
    const { stdout } = await shop.command("explain", "crash", "--in", web.name);
    const text = unwrapped(stdout);
    if (text.includes("which ends and is started again, over and over")) {
      assert.ok(text.includes("docker logs --tail 20 shop-crash-1"), text);
      seen.add(text.includes("NXDOMAIN") ? "waits" : "runs");
    }
    if (seen.size === 2) return true;
    const { Pid: pid } = (await crashing.inspect()).State;
    if (pid > 0) await shop.engine.exec("kill", ["-9", String(pid)]);
    return undefined;
  });
});

test("a container that ends over and over: what it looks up is explained, and it is a problem that nobody has to ask about", async () => {
  const keys = { restart: "always", command: ["sh", "-c", "exit 7"] };
  await using crashing = await shop.service("app2", ["shop_front"], { isShort: true, keys });
  await waitFor("Docker to wait", async () => {
    const { RestartCount: restarts, State: state } = await crashing.inspect();
    return restarts > 3 && state.Status === "restarting" ? true : undefined;
  });
  const loop =
    /container shop-app2-1 ends and is started again, over and over: \d+ times so far, it has ended with code 7/;
  for (const words of [
    ["explain", "nothing", "app2"],
    ["failures"],
    ["failures", "app2"],
    ["doctor"],
    ["doctor", "app2"],
  ]) {
    const text = await waitFor(`${words.join(" ")} while it waits`, async () => {
      const { stdout, stderr } = await shop.command(...words);
      const all = unwrapped(stdout + stderr);
      return /ended with code [1-9]/.test(all) ? all : undefined;
    });
    assert.match(text, loop, words.join(" "));
    assert.ok(text.includes("docker logs --tail 20 shop-app2-1"), text);
  }
  const { code } = await shop.command("doctor");
  assert.equal(code, 1);
  const { stdout } = await shop.command("explain", "nothing", "app2");
  assert.match(unwrapped(stdout), /also no container on this engine has the name "nothing"/);
});

test("a name with a port: whether something listens there, for others or for the container alone", async () => {
  await using open = await shop.service("open", ["shop_front"]);
  await using closed = await shop.service("closed", ["shop_front"]);
  const script = "require('node:net').createServer().listen(8080, process.argv[1])";
  const servers = [
    [open, "0.0.0.0"],
    [closed, "127.0.0.1"],
  ] as const;
  const running = servers.map(([container, address]) => {
    const [command = "", ...args] = inNetns(container.netnsPath, process.execPath, ["-e", script, address]);
    return spawn(command, args, { stdio: "ignore" });
  });
  try {
    for (const [name, what] of [
      ["open:8080", /"open" is container shop-open-1 \([\d.]+\), in which something listens on TCP port 8080/],
      [
        "closed:8080",
        /port 8080 is open on 127\.0\.0\.1 alone: .* have the program in shop-closed-1 listen on 0\.0\.0\.0/,
      ],
      ["open:80", /in which nothing listens on TCP port 80: it is not DNS .* something listens there: 8080/],
    ] as const)
      await waitFor(`${name} to be explained`, async () => {
        const { stdout } = await shop.command("explain", name, "--in", web.name);
        return what.test(unwrapped(stdout)) ? true : undefined;
      });
  } finally {
    for (const each of running) each.kill();
  }
});

test("a resolv.conf that names another server: explain asks as programs do", async () => {
  await using client = await shop.service("edited", ["shop_front"]);
  const write = "echo nameserver 127.0.0.2 >/etc/resolv.conf";
  stdoutOf(await client.exec("sh", ["-c", write]), write);
  const explained = unwrapped((await shop.command("explain", "web", "--in", client.name)).stdout);
  assert.match(
    explained,
    /^web \(A\) in shop-edited-1: no reply after .* why resolv\.conf of shop-edited-1 lists 127\.0\.0\.2/,
  );
  assert.doesNotMatch(explained, /resolves now/);
});

test("a mounted resolv.conf that names another server: ps says that dns11 is not asked", async () => {
  const file = join(dirname(shop.project.file), "resolv.conf");
  writeFileSync(file, "nameserver 10.255.255.3\n");
  const keys = { volumes: [`${file}:/etc/resolv.conf:ro`] };
  await using client = await shop.service("mounted", ["shop_front"], { keys });
  assert.match((await shop.command("ps")).stdout, /^shop +mounted +shop-mounted-1 +not asked +shop_front/m);
  await dig(client, "web");
  await waitFor("it to have asked", async () =>
    /shop-mounted-1 +ok /.test((await shop.command("ps")).stdout) ? true : undefined,
  );
});

test("a container in the namespace of another one: doctor says so first", async () => {
  await using sidecar = await runContainer(shop.engine, {
    name: "sidecar",
    args: ["--network", `container:${web.id}`],
  });
  const { code, stdout } = await shop.command("doctor", sidecar.name);
  assert.equal(code, 0, stdout);
  assert.match(
    unwrapped(stdout),
    /^NOTE sidecar: not served by dns11 \(shares-namespace\): it shares the network namespace of shop-web-1, .*: dns11 doctor shop-web-1 no problem found \(/,
  );
  assert.match((await shop.command("ps")).stdout, /^- +- +sidecar +ok .*shares the network of shop-web-1/m);
  const { stdout: status } = await shop.command("status");
  assert.match(status, /^containers +(\d+) of \1 served$/m);
  await dig(sidecar, "nobody");
  await shop.failureOf("nobody", "unknown-name");
  assert.match((await shop.command("failures")).stdout, /^shop-web-1 or sidecar +nobody +A /m);
});

test("a server that does not answer is one row, and one cause, in however many containers it is set", async () => {
  const address = "10.255.255.1";
  await using client = await shop.service("deaf", ["shop_front"], { number: 3, keys: { dns: [address] } });
  const all = ["shop-deaf-1", "shop-deaf-2", client.name];
  for (const name of all) await shop.instance.waitFor(name, "attached");
  let asked = 0;
  const down = async (): Promise<true | undefined> => {
    asked += 1;
    for (const name of all) await dig(await shop.called(name), "+time=1", "+tries=1", `a${asked}.ok.test`);
    const rows = (await shop.command("upstreams")).stdout.split("\n").filter((line) => line.startsWith(address));
    const isOne = rows.length === 1 && /^\S+ +3 containers +down .*all names \(shop-deaf-1, /.test(rows[0] ?? "");
    return isOne ? true : undefined;
  };
  await waitFor("the server to be down in all of them, in one row", down);
  // A query has failed when dns11 gives up, which may be after dig has.
  const stdout = await waitFor("one row for all of them", async () => {
    const { stdout: text } = await shop.command("failures", "--all");
    return /^shop-deaf-\d, shop-deaf-\d, shop-deaf-\d +a\d+\.ok\.test/m.test(text) ? text : undefined;
  });
  assert.equal(unwrapped(stdout).match(/the only upstream server is down \(10\.255\.255\.1\)/g)?.length, 1, stdout);
});

test("a server that does nothing else while a connection is open: doctor does not keep one open (dnsmasq --no-daemon)", async () => {
  const address = "10.99.0.3";
  const lines = ["host-record=a.local.test,192.0.2.1"];
  await using _server = await startDnsmasq(shop.engine, { address, args: ["--no-daemon"], lines });
  await using client = await shop.service("single", ["shop_front"], { keys: { dns: [address] } });
  const { code, stdout } = await shop.command("doctor", client.name, "--all");
  assert.equal(code, 0, stdout);
  assert.match(stdout, /10\.99\.0\.3: udp (?:REFUSED|NOERROR|NXDOMAIN) in .*, tcp (?:REFUSED|NOERROR|NXDOMAIN) in /);
});

test("dockerd hangs: no command waits for it, each says so and shows what dns11 knows, and doctor names it", async () => {
  const silent = /^dns11: dockerd at \S+ hangs: it answers nothing; what follows is what dns11 knows without it$/m;
  const shown: readonly (readonly [string[], RegExp])[] = [
    [["status"], /^engine .*: dockerd hangs, no answer for \d+ s; the last known names are served$/m],
    [["failures", web.name], /no container's name fails|^shop-web-1 .*nobody /m],
    [["explain", "web", "--in", web.name], /^web \(A\) in shop-web-1: \d/m],
    [["lookup", "web", "--in", web.name], /NOERROR from 127\.0\.0\.11/],
    [["ps"], /^shop +web +shop-web-1 /m],
    [["names"], /^shop_front +web /m],
  ];
  await shop.engine.exec("kill", ["-STOP", String(shop.engine.pid)]);
  try {
    for (const [words, output] of shown) {
      const { code, stdout, stderr } = await shop.command(...words);
      assert.equal(code, 0, stderr);
      assert.match(stderr, silent);
      assert.match(stdout, output);
    }
    const { code, stdout } = await shop.command("doctor");
    assert.equal(code, 1, stdout);
    assert.match(unwrapped(stdout), /^PROBLEM Docker host: Docker Engine: dockerd at \S+ hangs: .* WARNING .* dns11: /);
  } finally {
    await shop.engine.exec("kill", ["-CONT", String(shop.engine.pid)]);
  }
  assert.doesNotMatch((await shop.command("status")).stdout, /hangs/);
});
