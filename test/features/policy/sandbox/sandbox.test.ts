/**
 * `dns11 sandbox`: what a command starts may ask and reach only what is allowed, from its first instruction on. The meter is the log of
 * the name server outside.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import type { SandboxReport } from "../../../../src/features/policy/sandbox/witness.ts";
import { createNetwork, runContainer } from "../../../support/engine/container.ts";
import { API, AT_FIRST, STRANGER, StrangersWorld } from "../../../support/engine/strangers-world.ts";
import { rootfsOf } from "../../../support/engine/suite.ts";
import type { CommandResult } from "../../../support/program/command.ts";
import { type Dns11, dns11, startDns11 } from "../../../support/program/dns11.ts";
import { GoingCommand } from "../../../support/program/going-command.ts";
import { waitFor } from "../../../support/rig/wait.ts";

const ALLOW = ["--allow", "api.example.com"];
const SETTINGS = { env: { DNS11_LISTENER: "true", DNS11_EGRESS: "true" } } as const;
const STARTS = 5;
/** A connection to an address that nobody let through gets no reply, or a refusal. */
const REACH = `nc -w 2 ${STRANGER} 80 </dev/null && echo got-out`;
const folder = mkdtempSync(join(tmpdir(), "d11-sandbox-test-"));
const env = { DOCKER_CONFIG: folder };

let world: StrangersWorld;
let instance: Dns11;
let compose: string;

before(async () => {
  world = await StrangersWorld.begin("forky");
  await world.setNames(AT_FIRST);
  compose = join(await rootfsOf("forky"), "usr/libexec/docker/cli-plugins/docker-compose");
  instance = await startDns11(world.engine, SETTINGS);
});
after(async () => {
  await instance[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

function line(options: readonly string[], words: readonly string[], stateDir = instance.stateDir): string[] {
  return ["sandbox", "-H", world.engine.host, "--state-dir", stateDir, ...options, "--", ...words];
}

async function sandbox(options: readonly string[], ...words: readonly string[]): Promise<CommandResult> {
  return await dns11(line(options, words), { env });
}

/** A container that runs a script. */
function sh(script: string, ...more: readonly string[]): string[] {
  return ["docker", "run", "--rm", ...more, "agent", "sh", "-c", script];
}

/** Nothing of what is asked below the stranger's name, or sent to him, arrives while this runs. */
async function arrivesNothing(work: () => Promise<unknown>): Promise<void> {
  const earlier = await world.keys();
  await work();
  assert.deepEqual((await world.keys()).slice(earlier.length), []);
}

async function existing(): Promise<string[]> {
  const networks = (await world.engine.docker("network", "ls", "--format", "{{.Name}}")).split("\n");
  const containers = (await world.engine.docker("ps", "-a", "--format", "{{.Names}}")).split("\n");
  return [...networks, ...containers].filter((name) => !["bridge", "host", "none", ""].includes(name));
}

test("an allowed name is resolved and reached, nothing else is, and the end says both", async () => {
  const file = join(folder, "report.json");
  await arrivesNothing(async () => {
    const script = `wget -qO- http://api.example.com/; ${REACH}; nslookup -type=a key-run.tunnel.example.net; sleep 1; exit 7`;
    const { code, stdout, stderr } = await sandbox([...ALLOW, "--report", file], ...sh(script, "--name", "first"));
    assert.equal(code, 7, stderr);
    assert.match(stdout, /^I am 192\.0\.2\.10\n/);
    assert.doesNotMatch(stdout, /got-out/);
    assert.match(stderr, /^dns11: asked +api\.example\.com +first +\S+/m);
    assert.match(stderr, /^dns11: reached +192\.0\.2\.10:80\/tcp +first +api\.example\.com$/m);
    assert.match(stderr, /^dns11: refused +key-run\.tunnel\.example\.net +first +once: no rule allows it$/m);
    assert.match(stderr, /^dns11: refused +198\.51\.100\.66:80\/tcp +first +packets$/m);
  });
  const report = JSON.parse(readFileSync(file, "utf8")) as SandboxReport;
  assert.deepEqual(
    [report.asked, report.refused, report.refusedAddresses].map((each) => each.length),
    [1, 1, 1],
  );
  assert.deepEqual(report.reached, [{ address: `${API}:80/tcp`, by: "first", names: ["api.example.com"] }]);
  assert.deepEqual(await existing(), [], "nothing is left");
});

test("what has no port is refused as well, and not said to be reached", async () => {
  const { stderr } = await sandbox(
    [],
    ...sh(`sleep 1; ping -c 1 -W 1 ${STRANGER}; sleep 1`, "--cap-add", "NET_RAW", "--name", "pinger"),
  );
  assert.match(stderr, /pinger has NET_RAW: .*Delete --cap-add NET_RAW/);
  assert.match(stderr, /^dns11: refused +198\.51\.100\.66 \(icmp\) +pinger +packets$/m);
  assert.doesNotMatch(stderr, /^dns11: reached/m);
});

test("no name and no packet leaves with the first instructions", async () => {
  await arrivesNothing(async () => {
    for (let each = 1; each <= STARTS; each++) {
      const script = `dig +time=1 +tries=1 key-born-${each}.tunnel.example.net; dig +time=1 +tries=1 @${STRANGER} key-direct-${each}.tunnel.example.net; ${REACH}; true`;
      const { stdout, stderr } = await sandbox(ALLOW, ...sh(script));
      assert.match(stdout, /no servers could be reached/, stderr);
      assert.doesNotMatch(stdout, /status: NOERROR/);
      assert.doesNotMatch(stdout, /got-out/);
    }
  });
});

test("what cannot be held is not started, and the reason says which line to change", async () => {
  await using other = await runContainer(world.engine, { name: "other" });
  const disk = join(folder, "generic");
  execFileSync("mknod", [disk, "c", "21", "0"]);
  for (const [words, why] of [
    [["--privileged"], /it is privileged.*Delete --privileged/s],
    [["--network", "host"], /uses the network of the host.*Delete --network host/s],
    [["--cap-add", "NET_ADMIN", "--cap-add", "NET_RAW"], /Delete --cap-add NET_ADMIN.*Delete NET_RAW, too/s],
    [["-v", `${world.engine.socketPath}:/var/run/docker.sock`], /mounts .*docker\.sock.*Delete this mount/s],
    [["-v", "/:/host"], /mounts \/, and with it a socket/],
    [["--mount", `type=bind,source=${world.engine.folder},target=/x`], /Delete this mount/],
    [["--pid", "host"], /sees the processes of the host.*Delete --pid host/s],
    [["--security-opt", "systempaths=unconfined"], /may write settings of the host's kernel/],
    [["--device-cgroup-rule", "b *:* rwm"], /may use disks of the host/],
    [["--device", "/dev"], /has the disk \/dev/],
    [["--device", disk], /has the disk .*generic/],
    [["--log-driver", "syslog", "--log-opt", `syslog-address=tcp://${STRANGER}:80`], /Delete --log-driver/],
    [
      ["--mount", "type=volume,dst=/x,volume-opt=type=nfs,volume-opt=o=addr=x.test,volume-opt=device=:/x"],
      /has a volume of the type nfs/,
    ],
    [["--volumes-from", other.name], /uses the network, processes or mounts of other/],
    [
      ["--network", `container:${other.name}`],
      /uses the network, processes or mounts of other, which is not in this sandbox/,
    ],
  ] as const) {
    const { code, stderr } = await sandbox(ALLOW, ...sh("echo started", ...words));
    assert.notEqual(code, 0, words.join(" "));
    assert.match(stderr, why);
  }
  assert.deepEqual(await existing(), ["other"]);
});

test("what was made is looked at again when it starts", async () => {
  const place = join(folder, "place");
  mkdirSync(place);
  const swap = `rmdir ${place} && ln -s ${world.engine.folder} ${place}`;
  const { code, stderr } = await sandbox(
    [],
    "sh",
    "-c",
    `docker create --name later -v ${place}:/x agent && ${swap} && docker start later`,
  );
  assert.notEqual(code, 0);
  assert.match(stderr, /later cannot be held: it mounts .*place/);
  await world.engine.docker("rm", "later");
});

test("a program with the rights of root is not started in a container of the sandbox", async () => {
  const script = `docker run -d --rm --name held agent sleep 60 && docker exec --privileged held id; docker update --restart always held; docker rm -f held`;
  const { stderr } = await sandbox([], "sh", "-c", script);
  assert.match(stderr, /held would start again when nobody holds it.*Delete --restart/s);
  assert.match(stderr, /A privileged program in held cannot be held.*Delete --privileged/s);
});

test("the engine reads of a request what was looked at, and no description with a start", async () => {
  const post = (path: string, body: string): string =>
    `curl -s --unix-socket \${DOCKER_HOST#unix://} -H Content-Type:application/json -d '${body}' http://docker/containers/twice/${path}`;
  const script = [
    "docker run -d --name twice agent sleep 60",
    post("update", '{"RestartPolicy":{"Name":"always"},"RestartPolicy":{}}'),
    post("start", '{"Privileged":true}'),
    "echo; docker inspect -f '{{.HostConfig.RestartPolicy.Name}}' twice",
    "docker rm -f twice",
  ].join("; ");
  const { stdout } = await sandbox([], "sh", "-c", script);
  assert.match(stdout, /"Warnings":null[^]*twice would start otherwise than it was made[^]*\nno\n/);
});

test("streams of a terminal pass as they are", async () => {
  const input = "x".repeat(200_000);
  const { stdout, stderr } = await dns11(line([], ["docker", "run", "-i", "--rm", "agent", "cat"]), { env, input });
  assert.equal(stdout, input, stderr);
});

test("it is held while it runs detached, and Ctrl-C closes what is left", async () => {
  const words = ["docker", "run", "-d", "--restart", "always", "--name", "detached", "agent", "sleep", "300"];
  await using going = new GoingCommand(line(ALLOW, words), env);
  await going.says(/holding detached/);
  assert.match(going.out, /restart policy always is left out/);
  const fetch = async (): Promise<string> =>
    await world.engine.docker("exec", "detached", "sh", "-c", "wget -qO- http://api.example.com/ || echo none");
  assert.equal(await fetch(), `I am ${API}`);
  await arrivesNothing(async () => {
    await world.engine.docker("exec", "detached", "sh", "-c", `nslookup key-held.tunnel.example.net; ${REACH}; true`);
    assert.equal(await going.end(), 0, going.out);
    assert.match(going.out, /detached still runs, and nothing is allowed any more/);
    await world.engine.docker("exec", "detached", "sh", "-c", "nslookup key-after.tunnel.example.net; true");
  });
  assert.match(
    await world.engine.docker("exec", "detached", "sh", "-c", "nslookup -type=a registry.example.org; true"),
    /NXDOMAIN/,
  );
  await world.engine.docker("kill", "detached");
  await world.engine.docker("rm", "detached");
});

test("a sandbox that is killed opens nothing, its containers do not start again, and the next one cleans up", async () => {
  const words = ["docker", "run", "-d", "--restart", "always", "--name", "orphan", "agent", "sleep", "300"];
  await using going = new GoingCommand(line(ALLOW, words), env);
  await going.says(/holding orphan/);
  await going.end("SIGKILL");
  const ask = "nslookup -type=a api.example.com; nslookup -type=a key-orphan.tunnel.example.net; true";
  await arrivesNothing(async () => {
    await waitFor("it to be closed", async () =>
      /NXDOMAIN[^]*NXDOMAIN/.test(await world.engine.docker("exec", "orphan", "sh", "-c", ask)) ? true : undefined,
    );
  });
  await world.engine.docker("kill", "orphan");
  await world.engine.restartDaemon();
  assert.equal(await world.engine.docker("inspect", "-f", "{{.State.Running}}", "orphan"), "false");
  assert.equal((await sandbox([], ...sh("true"))).code, 0);
  await assert.rejects(world.engine.docker("start", "orphan"), /network.* not found/);
  await world.engine.docker("rm", "orphan");
  assert.deepEqual(await existing(), []);
});

test("a dns11 that is killed and starts again opens nothing, and goes on holding", async () => {
  const words = ["docker", "run", "-d", "--name", "kept", "agent", "sleep", "300"];
  await using going = new GoingCommand(line(ALLOW, words), env);
  await going.says(/holding kept/);
  const exec = async (script: string): Promise<string> => await world.engine.docker("exec", "kept", "sh", "-c", script);
  await arrivesNothing(async () => {
    const { stateDir } = instance;
    instance.kill("SIGKILL");
    await instance.ended();
    await exec(`nslookup -type=a key-gone.tunnel.example.net; ${REACH}; true`);
    instance = await startDns11(world.engine, { ...SETTINGS, stateDir });
    await exec(`nslookup -type=a key-again.tunnel.example.net; ${REACH}; true`);
    await going.says(/held again/);
    await exec(`nslookup -type=a key-held-again.tunnel.example.net; ${REACH}; true`);
  });
  assert.match(await exec("wget -qO- http://api.example.com/"), /I am/);
  await world.engine.docker("rm", "-f", "kept");
  assert.equal(await going.ended, 0, going.out);
});

test("a Compose project is held with its networks, and its services find each other", async () => {
  const project = join(folder, "shop");
  mkdirSync(project);
  const script = `nslookup -type=a db; wget -qO- http://api.example.com/; nslookup -type=a key-shop.tunnel.example.net; ${REACH}; true`;
  const services = {
    db: { image: "agent", command: "sleep 300", stop_grace_period: "0s" },
    web: {
      image: "agent",
      command: ["sh", "-c", script.replaceAll("$", "$$")],
      depends_on: ["db"],
      networks: ["back", "default"],
    },
  };
  const file = {
    services: { ...services, db: { ...services.db, networks: ["back"] } },
    networks: { back: {}, default: {} },
  };
  writeFileSync(join(project, "compose.yaml"), JSON.stringify(file));
  await arrivesNothing(async () => {
    const words = [compose, "-f", join(project, "compose.yaml"), "up", "--abort-on-container-exit"];
    const { stdout, stderr } = await sandbox(ALLOW, ...words);
    assert.match(stdout, /web-1 +\| I am 192\.0\.2\.10/, stderr);
    assert.match(stdout, /web-1 +\| Name:\s+db/);
    assert.match(stderr, /refused +key-shop\.tunnel\.example\.net +shop-web-1/);
    // They are there already.
    const again = await sandbox(ALLOW, ...words);
    assert.match(again.stdout, /web-1 +\| I am 192\.0\.2\.10/, again.stderr);
    assert.match(again.stderr, /shop-web-1 was not made in this sandbox/);
  });
  await dns11(line([], [compose, "-f", join(project, "compose.yaml"), "down", "-t", "0"]), { env });
  assert.deepEqual(await existing(), []);
});

test("a container that runs already is held from then on, and that is said", async () => {
  await createNetwork(world.engine, "old");
  await using old = await runContainer(world.engine, {
    name: "old",
    networks: ["old"],
    image: "agent",
    command: ["sleep", "300"],
  });
  await instance.waitFor("old", "attached");
  const { stdout, stderr } = await sandbox(
    ALLOW,
    ...[
      "docker",
      "exec",
      "old",
      "sh",
      "-c",
      `wget -qO- http://api.example.com/; nslookup key-old.tunnel.example.net; ${REACH}`,
    ],
  );
  const renamed = await sandbox(ALLOW, "docker", "rename", "old", "new");
  assert.match(renamed.stderr, /old is held by its name/);
  assert.match(stderr, /old runs already: what it did before this moment was not held/);
  assert.match(stdout, /I am 192\.0\.2\.10[^]*NXDOMAIN/);
  assert.doesNotMatch(stdout, /got-out/);
  assert.match(stderr, /refused +key-old\.tunnel\.example\.net/);
  await arrivesNothing(async () => await old.exec("nslookup", ["key-end.tunnel.example.net"]));
  await old.remove();
  await world.engine.docker("network", "rm", "old");
});

test("on a network with others only its own containers are held, and that is said", async () => {
  await createNetwork(world.engine, "shared");
  await using other = await runContainer(world.engine, {
    name: "neighbour",
    networks: ["shared"],
    image: "agent",
    command: ["sleep", "300"],
  });
  await instance.waitFor("neighbour", "attached");
  const { stdout, stderr } = await sandbox(
    ALLOW,
    ...sh("sleep 1; nslookup key-shared.tunnel.example.net; nslookup -type=a neighbour", "--network", "shared"),
  );
  assert.match(stderr, /network shared has other containers, so it stays open/);
  assert.match(stdout, /NXDOMAIN[^]*Name:\s+neighbour/);
  assert.match((await other.exec("wget", ["-qO-", `http://${STRANGER}/`])).stdout, /I am/);
  await other.remove();
  await world.engine.docker("network", "rm", "shared");
});

test("what was learned is what the next run needs", async () => {
  const file = join(folder, "learned.yaml");
  const work = "wget -qO- http://api.example.com/ && wget -qO- http://registry.example.org/";
  const learned = await sandbox(["--learn", file], ...sh(`${work}; sleep 1`, "--name", "learner"));
  assert.match(
    readFileSync(file, "utf8"),
    /allow:\n +- "api\.example\.com:80\/tcp" # asked by learner\n +- "registry\.example\.org:80\/tcp"/,
    learned.stderr,
  );
  assert.doesNotMatch(learned.stderr, /refused/);
  await arrivesNothing(async () => {
    const { code, stderr } = await sandbox(
      ["--policy", file],
      ...sh(`${work} && ! nslookup key-learned.tunnel.example.net`),
    );
    assert.equal(code, 0, stderr);
  });
});

test("without a running dns11, one is started for as long as it takes", async () => {
  const { stateDir } = instance;
  await instance.stop();
  const own = join(folder, "state");
  await arrivesNothing(async () => {
    const script = `wget -qO- http://api.example.com/; nslookup -type=a key-own.tunnel.example.net; ${REACH}; true`;
    const { code, stdout, stderr } = await dns11(line(ALLOW, sh(script), own), {
      env: { ...env, DNS11_METRICS_ADDR: "off" },
    });
    assert.equal(code, 0, stderr);
    assert.match(stderr, /no dns11 runs for this engine: one is started/);
    assert.match(stdout, /I am 192\.0\.2\.10[^]*NXDOMAIN/);
    assert.match(stderr, /reached +192\.0\.2\.10:80\/tcp/);
  });
  instance = await startDns11(world.engine, { ...SETTINGS, stateDir });
});

test("a mistake is named, and the command is not run", async () => {
  const two = join(folder, "two.yaml");
  writeFileSync(two, "version: 1\npolicies:\n  a: { mode: enforce }\n  b: { mode: enforce }\n");
  for (const [options, words, why] of [
    [[], [], /dns11 sandbox needs a command/],
    [["--allow", "not a name"], ["echo", "ran"], /invalid .*"not a name"/],
    [["--policy", two], ["echo", "ran"], /has 2 policies/],
    [["--report", "/nonexistent/x"], ["echo", "ran"], /"\/nonexistent\/x" cannot be written/],
    [["--policy", "/nonexistent"], ["echo", "ran"], /"\/nonexistent" cannot be read/],
  ] as const) {
    const { code, stdout, stderr } = await sandbox(options, ...words);
    assert.notEqual(code, 0);
    assert.match(stderr, why);
    assert.equal(stdout, "");
  }
  const past = await sandbox([], "docker", "-H", world.engine.host, "run", "--rm", "agent", "true");
  assert.match(past.stderr, /has started no container through this sandbox/);
  assert.match((await dns11(["sandbox", "--agents"])).stdout, /why\.dns11\.alt/);
});
