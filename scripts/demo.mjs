// @ts-check
/**
 * The demonstration of `make run`: a private engine with a small project, with dns11 beside it. Everything is created
 * here and removed at the end; containers and services of the machine are not touched.
 */
import { createNetwork, runContainer } from "../dist/test/support/engine/container.js";
import { dig } from "../dist/test/support/client/dig.js";
import { dns11, startDns11 } from "../dist/test/support/program/dns11.js";
import { startEngine } from "../dist/test/support/engine/engine.js";
import { startUpstream } from "../dist/test/support/servers/upstream.js";

const bold =
  process.stdout.isTTY && process.env["NO_COLOR"] === undefined
    ? (/** @type {string} */ text) => `\x1b[1m${text}\x1b[0m`
    : String;
const say = (/** @type {string} */ text) => console.log(`\n${bold(text)}`);

/** Runs dig in a container, and shows question and answer. The TTL shows who answered: Docker uses 600 s, dns11 5. */
async function show(/** @type {any} */ container, /** @type {string[]} */ ...args) {
  const reply = await dig(container, ...args);
  const [first] = reply.answer;
  const data = reply.answer.map((/** @type {{data: string}} */ record) => record.data).join("  ") || "(no records)";
  const ttl = first === undefined ? "" : `  ttl ${first.ttl}`;
  console.log(`  ${container.name}$ dig ${args.join(" ").padEnd(24)} ${reply.status || "no answer"}  ${data}${ttl}`);
  return reply;
}

const engine = await startEngine();
try {
  say(`A private Docker ${engine.version}, in its own network namespace, with a small project:`);
  const upstream = await startUpstream(engine);
  await createNetwork(engine, "shop");
  await createNetwork(engine, "backstage");
  const web = await runContainer(engine, { name: "web", networks: [{ name: "shop", aliases: ["www"] }] });
  await runContainer(engine, { name: "api-1", networks: [{ name: "shop", aliases: ["api"] }, "backstage"] });
  await runContainer(engine, { name: "api-2", networks: [{ name: "shop", aliases: ["api"] }, "backstage"] });
  await runContainer(engine, { name: "db", networks: ["backstage"], labels: { "io.dns11.enable": "false" } });
  console.log((await engine.docker("ps", "--format", "  {{.Names}}\t{{.Networks}}")).replace(/\n/g, "\n"));

  say("Docker's own resolver answers at 127.0.0.11 in each container (ttl 600):");
  await show(web, "api");

  say(`dns11 run -H ${engine.host}`);
  const instance = await startDns11(engine);
  const status = await dns11(["status", "-H", engine.host, "--state-dir", instance.stateDir]);
  console.log(status.stdout.replace(/^/gm, "  "));

  say("dns11 answers the same query now (ttl 5):");
  await show(web, "api");
  await show(web, "WWW.shop");
  await show(web, "-x", web.address("shop"));
  await show(web, "api", "TXT");
  await show(web, "+tcp", "api-2.shop");
  await show(web, "example.ok.test");

  say("Names of new containers resolve at once, and names of removed ones no longer:");
  const late = await runContainer(engine, { name: "late", networks: ["shop"] });
  await instance.waitFor("late", "attached");
  await show(web, "late");
  await show(late, "web");
  await late.remove();

  say("kill -9: the keeper removes the rules, and Docker's resolver answers again:");
  instance.kill("SIGKILL");
  await instance.exited;
  await show(web, "api");
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
} finally {
  await engine[Symbol.asyncDispose]();
}
say("Everything is removed again. To serve this machine's own engine:  sudo node dist/cmd/dns11.js run");
