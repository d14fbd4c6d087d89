/** What of a request for a container of a sandbox is refused or changed, and the socket that sees it, with requests that nobody sends. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { type Server, createServer } from "node:http";
import { type Socket, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import * as fc from "fast-check";

import { Fault } from "../../../../src/base/lib/fault.ts";
import {
  type CreateBody,
  type HostConfig,
  SANDBOX_LABEL,
  type SandboxPlace,
  heldRequest,
} from "../../../../src/features/policy/sandbox/container-request.ts";
import { EngineProxy, type OnCall, askEngine } from "../../../../src/features/policy/sandbox/engine-proxy.ts";
import { runs } from "../../../support/rig/runs.ts";

const folder = mkdtempSync(join(tmpdir(), "d11-sandbox-requests-"));
after(() => rmSync(folder, { recursive: true }));
const PLACE: SandboxPlace = {
  id: "1-ab",
  network: "dns11-sandbox-1-ab",
  sockets: [join(folder, "run", "docker.sock")],
  hasUserNamespaces: false,
};

function held(host: HostConfig, more: CreateBody = {}): CreateBody {
  return heldRequest({ ...more, HostConfig: host }, PLACE, "web").body;
}

test("what holds a container is added, and what is its own stays", () => {
  assert.deepEqual(held({ Binds: ["/srv:/srv"] }, { Labels: { a: "b" } }), {
    Labels: { a: "b", [SANDBOX_LABEL]: PLACE.id },
    HostConfig: {
      Binds: ["/srv:/srv"],
      NetworkMode: PLACE.network,
      Dns: ["169.254.53.53"],
      CapDrop: ["NET_RAW"],
    },
  });
  const own = heldRequest(
    {
      HostConfig: { NetworkMode: "back", CapAdd: ["net_raw"], Dns: ["192.0.2.53"], RestartPolicy: { Name: "always" } },
      NetworkingConfig: { EndpointsConfig: { back: { NetworkID: "5e2f" }, default: {} } },
    },
    PLACE,
    "web",
  );
  assert.deepEqual(own.networks, ["back", "5e2f"]);
  assert.equal(own.usesOwnNetwork, true);
  assert.equal(own.notes.length, 3);
  assert.deepEqual(own.body.NetworkingConfig?.EndpointsConfig, { back: { NetworkID: "5e2f" }, [PLACE.network]: {} });
  assert.deepEqual(own.body.HostConfig?.RestartPolicy, { Name: "no" });
  assert.deepEqual(own.body.HostConfig?.Dns, ["192.0.2.53"]);
  assert.equal(own.body.HostConfig?.CapDrop, undefined);
});

test("a folder above a socket is one, by whatever links", () => {
  const link = join(folder, "link");
  symlinkSync(folder, link);
  for (const source of ["/", folder, `${folder}/run`, `${folder}/./run/../run/`, link, `${link}/run/docker.sock`])
    for (const host of [
      { Binds: [`${source}:/x:ro`] },
      { Mounts: [{ Type: "bind", Source: source }] },
      { Mounts: [{ Type: "volume", VolumeOptions: { DriverConfig: { Options: { device: source } } } }] },
    ])
      assert.throws(() => held(host), /Delete this mount|starts containers which nobody holds/, JSON.stringify(host));
  for (const source of ["/srv", `${folder}x`, "volume", `${folder}/run/other`]) held({ Binds: [`${source}:/x`] });
});

test("what leaves by the host, or is a disk of it, is refused", () => {
  for (const host of [
    { LogConfig: { Type: "syslog" } },
    { Mounts: [{ Type: "volume", VolumeOptions: { DriverConfig: { Options: { type: "nfs", device: ":/x" } } } }] },
    { Mounts: [{ Type: "volume", VolumeOptions: { DriverConfig: { Name: "sshfs" } } }] },
    { DeviceCgroupRules: ["b *:* rwm"] },
    { DeviceCgroupRules: ["a *:* rwm"] },
    { DeviceCgroupRules: ["c 1:3 r", "c *:* rwm"] },
    { DeviceCgroupRules: [" c 21:* rwm"] },
    { Devices: [{ PathOnHost: "/dev" }] },
    { ReadonlyPaths: [] },
    { PidMode: "host" },
  ])
    assert.throws(() => held(host), /web cannot be held/, JSON.stringify(host));
  held({ LogConfig: { Type: "json-file" }, DeviceCgroupRules: ["c 1:3 rwm"], ReadonlyPaths: ["/proc/sys"] });
});

test("a key that the engine reads in another spelling is refused", () => {
  for (const key of ["privileged", "PRIVILEGED", "ho\u017ftconfig", "networ\u212aMode"])
    for (const body of [{ HostConfig: { [key]: true } }, { [key]: {} }])
      assert.throws(() => heldRequest(body, PLACE, "web"), /The engine would read/, key);
});

test("root in a user namespace is nobody's root, unless the container has the host's", () => {
  const place = { ...PLACE, hasUserNamespaces: true };
  heldRequest({ HostConfig: { CapAdd: ["NET_ADMIN"] } }, place, "web");
  assert.throws(() => heldRequest({ HostConfig: { Privileged: true, UsernsMode: "host" } }, place, "web"), Fault);
});

test("whatever is asked for, it is refused or held", () => {
  const name = fc.constantFrom(
    "Privileged",
    "privileged",
    "CapAdd",
    "capadd",
    "NetworkMode",
    "networkMode",
    "Binds",
    "PidMode",
    "Ho\u017ftConfig",
    "CAPADD",
  );
  const value = fc.oneof(
    fc.boolean(),
    fc.constantFrom("host", "default", "bridge", "", "none", "back", "container:x"),
    fc.array(fc.constantFrom("ALL", "cap_net_admin", "NET_RAW", "SYS_ADMIN", "/:/x", "CHOWN")),
    fc.constant(null),
    fc.anything(),
  );
  const host = fc.dictionary(name, value);
  fc.assert(
    fc.property(host, (config) => {
      let body;
      try {
        body = held(config);
      } catch (error) {
        // The engine would not take it either.
        assert.ok(error instanceof Fault || error instanceof TypeError, String(error));
        return;
      }
      const plain = Object.fromEntries(
        Object.entries(body.HostConfig ?? {}).map(([key, each]) => [key.toLowerCase(), each] as const),
      );
      assert.equal(body.Labels?.[SANDBOX_LABEL], PLACE.id);
      assert.notEqual(plain["privileged"], true);
      assert.notEqual(plain["networkmode"], "host");
      assert.ok(!["", "default", "bridge"].includes(String(plain["networkmode"])));
      assert.notEqual(plain["pidmode"], "host");
      assert.doesNotMatch(JSON.stringify(plain["capadd"] ?? []), /ALL|net_admin|SYS_ADMIN/);
    }),
    { numRuns: runs(200) },
  );
});

interface Stand {
  readonly path: string;
  readonly seen: string[];
}

/** An engine that says what it was asked, behind a proxy. */
async function stand(
  onCall: OnCall,
  answer?: (socket: Socket, first: Buffer) => void,
): Promise<Stand & AsyncDisposable> {
  const [engine, path] = [join(folder, "engine.sock"), join(folder, "proxy.sock")];
  const seen: string[] = [];
  const server: Server = createServer((incoming, outgoing) => {
    seen.push(`${incoming.method} ${incoming.url}`);
    incoming.resume().on("end", () => outgoing.end("{}"));
  });
  server.on("upgrade", ({ method, url }, socket, first) => {
    seen.push(`${method} ${url}`);
    answer?.(socket as Socket, first);
  });
  await new Promise<void>((resolve) => server.listen(engine, resolve));
  const proxy = await EngineProxy.listen(engine, path, onCall);
  return {
    path,
    seen,
    [Symbol.asyncDispose]: async () => {
      proxy.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function spoken(path: string, text: string): Promise<string> {
  return await new Promise((resolve) => {
    let out = "";
    const socket = connect(path, () => socket.end(text));
    socket.on("data", (chunk: Buffer) => (out += chunk.toString()));
    socket.on("error", () => resolve(out)).on("close", () => resolve(out));
  });
}

test("a path is the same by any spelling, and a refusal is the engine's to the client", async () => {
  const paths: string[] = [];
  await using each = await stand(async ({ path }) => {
    paths.push(path);
    return await Promise.reject(new Fault("POLICY_NOT_HELD", "No", { remedy: "Do otherwise." }));
  });
  for (const path of [
    "/containers/create",
    "/v1.47/containers/create",
    "/v1/containers/%63reate?name=x",
    "/%761.47/containers/create",
  ]) {
    const { status, text } = await askEngine(each.path, "POST", path, "{}");
    assert.deepEqual([status, text], [409, '{"message":"dns11 sandbox: No. Do otherwise."}']);
  }
  assert.deepEqual(new Set(paths), new Set(["/containers/create"]));
  assert.match(
    (await askEngine(each.path, "POST", "http://docker/containers/create", "{}")).text,
    /no path of the engine's/,
  );
  assert.equal(paths.length, 4);
  assert.deepEqual(each.seen, []);
});

test("a description that is too long, or no JSON, is refused and reaches nobody", async () => {
  await using each = await stand(async ({ json }) => ({ body: await json() }));
  assert.equal((await askEngine(each.path, "POST", "/containers/create", "{")).status, 502);
  assert.equal((await askEngine(each.path, "POST", "/containers/create", "x".repeat(5_000_000))).status, 409);
  assert.deepEqual(each.seen, []);
  assert.equal((await askEngine(each.path, "POST", "/containers/create", "{}")).status, 200);
});

test("a request behind one that the engine did not upgrade is not passed on", async () => {
  const upgrade = "POST /exec/x/start HTTP/1.1\r\nHost: d\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n";
  const hidden = "POST /containers/create HTTP/1.1\r\nHost: d\r\nContent-Length: 2\r\n\r\n{}";
  const calls: string[] = [];
  let behind = "";
  const listen = (status: string) => (socket: Socket, first: Buffer) => {
    behind += first.toString();
    socket.write(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`);
    socket.on("data", (chunk: Buffer) => (behind += chunk.toString())).on("end", () => socket.end());
  };
  const onCall: OnCall = async ({ path }) => {
    calls.push(path);
    return await Promise.resolve(undefined);
  };
  {
    await using each = await stand(onCall, listen("404 Not Found"));
    await new Promise<void>((resolve) => {
      const socket = connect(each.path, () => socket.write(upgrade));
      socket.once("data", () => {
        socket.write(hidden);
        setTimeout(() => socket.destroy(), 100);
      });
      socket.on("close", () => resolve());
    });
    assert.equal(behind, "");
  }
  for (const status of ["200 OK", "404 Not Found"]) {
    await using each = await stand(onCall, listen(status));
    await spoken(each.path, upgrade + hidden);
    assert.equal(behind, "", status);
  }
  {
    await using each = await stand(onCall, listen("101 UPGRADED"));
    await spoken(each.path, `${upgrade}text of a terminal`);
    assert.equal(behind, "text of a terminal");
  }
  assert.deepEqual(new Set(calls), new Set(["/exec/x/start"]));
});

test("bytes that are no request end their connection alone", async () => {
  await using each = await stand(async () => await Promise.resolve(undefined));
  await fc.assert(
    fc.asyncProperty(fc.string({ maxLength: 500, unit: "binary" }), async (text) => {
      await spoken(each.path, text);
      assert.equal((await askEngine(each.path, "GET", "/_ping")).status, 200);
    }),
    { numRuns: runs(20) },
  );
});
