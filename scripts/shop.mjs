// @ts-check
/**
 * The project of docs/tour.md and of the pictures: "api", on its network alone, asks in vain for "db", which is on the other one.
 */
import { createNetwork, runContainer } from "../dist/test/support/engine/container.js";

/** @typedef {import("../dist/test/support/engine/engine.js").Engine} Engine */

/** The containers that asked for names in the pictures. @param {Engine} engine */
export async function startShop(engine) {
  for (const name of ["shop_front", "shop_back"]) await createNetwork(engine, name);
  const web = await shopService(engine, "web", 1, ["shop_front"]);
  const api = await shopService(engine, "api", 1, ["shop_front"]);
  await shopService(engine, "api", 2, ["shop_front", "shop_back"]);
  const worker = await shopService(engine, "worker", 1, ["shop_back"]);
  await shopService(engine, "db", 1, ["shop_back"]);
  return { web, api, worker };
}

/** As Compose creates it. @param {Engine} engine @param {string} name @param {number} number @param {string[]} networks */
export async function shopService(engine, name, number, networks) {
  return await runContainer(engine, {
    name: `shop-${name}-${number}`,
    networks: networks.map((network) => ({ name: network, aliases: [name] })),
    labels: {
      "com.docker.compose.project": "shop",
      "com.docker.compose.service": name,
      "com.docker.compose.project.config_files": "/srv/shop/compose.yaml",
    },
  });
}
