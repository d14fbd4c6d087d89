// Three members of a real etcd with TLS and users, as a container resolves names in them: what is wrong is named, and what becomes of
// the names as members go.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { waitFor } from "../../support/rig/wait.ts";
import { makeCertificates } from "../../support/servers/certificates.ts";
import { EtcdClient } from "./etcd-client.ts";
import { type Etcd, base64, startEtcd } from "./etcd-server.ts";

test("three members, TLS, a user: a wrong certificate, a wrong password and no permission are named", async () => {
  let cluster!: Etcd;
  let tls!: Awaited<ReturnType<typeof makeCertificates>>;
  let password = "";
  await using rig = await EtcdClient.start(async (engine, folder) => {
    tls = await makeCertificates(folder, 2);
    password = join(folder, "password");
    writeFileSync(password, "wrong\n");
    // Tokens end soon, so that they are renewed.
    cluster = await startEtcd(engine, { members: 3, subnet: 2, tls, args: ["--auth-token-ttl=5"] });
    await cluster.put("/skydns/test/shop/three", { host: "10.3.0.1" });
    await addUsers(cluster);
    return { endpoints: cluster.endpoints, ca: tls.ca, user: "reader", "password-file": password };
  });
  await using _ = cluster;
  const { endpoints } = cluster;
  await rig.until("a wrong password", ({ code, state }) => code === "ETCD_CREDENTIALS" && state === "unavailable");
  assert.deepEqual(await rig.answer("three.shop.test"), ["SERVFAIL"], "neither answered nor denied");
  const settings = { endpoints, ca: tls.ca, user: "reader", "password-file": password };
  writeFileSync(password, "secret\n");
  await rig.reload(settings);
  await rig.resolves("three.shop.test", "NOERROR", "10.3.0.1");
  await rig.reload({ ...settings, user: "stranger" });
  await rig.until("no permission", ({ code }) => code === "ETCD_PERMISSION");
  await rig.reload({ ...settings, ca: tls.other });
  const wrong = await rig.until("a wrong certificate", ({ code }) => code === "ETCD_CERTIFICATE");
  assert.match(wrong.remedy ?? "", /etcd\.ca/);
  await rig.reload(settings);
  await rig.resolves("three.shop.test", "NOERROR", "10.3.0.1");

  // The member that is used goes away, another way each time: the others answer.
  const used = async (): Promise<number> => {
    const { members } = await rig.until("a member in use", ({ state }) => state === "current");
    return members.findIndex(({ isCurrent }) => isCurrent);
  };
  const first = await used();
  const token = await tokenOf(cluster, (first + 1) % 3);
  const write = async (key: string, host: string): Promise<void> => {
    const body = { key: base64(`/skydns/test/shop/${key}`), value: base64(JSON.stringify({ host })) };
    await waitFor(`the cluster to store ${key}`, async () => {
      const options = { member: (first + 1) % 3, token: await tokenOf(cluster, (first + 1) % 3).catch(() => token) };
      const reply = await cluster.call("/v3/kv/put", body, options).catch(() => undefined);
      return reply?.status === 200 ? true : undefined;
    });
  };
  await cluster.members[first]?.kill();
  await write("killed", "10.3.0.2");
  await rig.resolves("killed.shop.test", "NOERROR", "10.3.0.2");
  await cluster.members[first]?.start();
  const second = await used();
  await rig.cutOff(cluster.members[second]?.address ?? "");
  await write("cut", "10.3.0.3");
  await rig.resolves("cut.shop.test", "NOERROR", "10.3.0.3");
  assert.notEqual(await used(), second);
  await rig.reconnect();

  // Alone, a member opens streams and knows nothing new: that is not etcd, however often it is tried.
  for (const member of [1, 2]) await cluster.members[(first + member) % 3]?.kill();
  const { reconnects } = await rig.until("etcd to be away", ({ state }) => state === "last-known");
  await rig.until("two more tries", (state) => {
    assert.equal(state.state, "last-known");
    return state.reconnects >= reconnects + 2;
  });
  assert.deepEqual(await rig.answer("cut.shop.test"), ["NOERROR", "10.3.0.3"]);
});

// A user who may read the names, one who may read nothing, and root.
async function addUsers(cluster: Etcd): Promise<void> {
  const call = async (path: string, body: object): Promise<void> => {
    const { status, json } = await cluster.call(path, body);
    assert.equal(status, 200, `${path}: ${JSON.stringify(json)}`);
  };
  for (const [name, password, role] of [
    ["root", "root", "root"],
    ["reader", "secret", "reader"],
    ["stranger", "secret", "nothing"],
  ] as const) {
    await call("/v3/auth/user/add", { name, password });
    await call("/v3/auth/role/add", { name: role });
    await call("/v3/auth/user/grant", { user: name, role });
  }
  const perm = { permType: "READ", key: base64("/skydns/"), range_end: base64("/skydns0") };
  await call("/v3/auth/role/grant", { name: "reader", perm });
  await call("/v3/auth/enable", {});
}

async function tokenOf(cluster: Etcd, member: number): Promise<string> {
  const { json } = await cluster.call("/v3/auth/authenticate", { name: "root", password: "root" }, { member });
  return String(json["token"]);
}
