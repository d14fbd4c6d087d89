/**
 * The manual page dns11.yaml(5): every key of the settings file, and an example.
 */
import type { Command } from "commander";

import type { Build } from "../process/build.ts";
import { settingsKeys, valueText, exampleSettings } from "./keys.ts";
import { bold, heading, item, plain, section, wrapped } from "./roff.ts";

const ABOUT = [
  "dns11 reads its settings from flags, environment variables and a settings file in YAML, in this order of precedence. The " +
    "first source that sets a key replaces the value of all others, also for a list. A key that is not set has its default.",
  "dns11 reads the file at the start, and again at SIGHUP. Its first line is the version of the format. A file with an " +
    "unknown key or an invalid value is rejected as a whole, with the line of each mistake. To check a file beforehand, run " +
    "dns11 check-config FILE.",
  "Times are in seconds, or have units: 250ms, 90s, 1h30m, 1d. Sizes are in bytes, or have units: 64KiB, 32MiB, 1GiB. A key " +
    "with a dot is in a map: cache.size is written as cache: {size: 32MiB}.",
];

export function settingsPage(_: Command, build: Build): string {
  const items = settingsKeys().map(({ key, description, accepts, defaultValue, strictValue, flag, variable }) => {
    const isOtherwise = valueText(defaultValue) !== valueText(strictValue) && key !== "strict";
    const notes = [
      ...(accepts === undefined || description.includes(accepts.replace("one of ", "")) ? [] : [`accepts: ${accepts}`]),
      `default: ${valueText(defaultValue) || "nothing"}${isOtherwise ? `, with strict: ${valueText(strictValue)}` : ""}`,
      ...(flag === undefined ? [] : [`flag: ${flag}`]),
      ...(variable === undefined ? [] : [`env: ${variable}`]),
    ];
    return item(
      bold(key),
      plain(
        `${description}. ${notes.map((note) => `${note.replace(/^./, (first) => first.toUpperCase())}.`).join(" ")}`,
      ),
    );
  });
  return [
    heading("DNS11.YAML", 5, build.day, `dns11 ${build.version}`),
    section("NAME", `${plain("dns11.yaml")} \\- settings file of dns11\n`),
    section("DESCRIPTION", `${ABOUT.map((text) => wrapped(plain(text))).join("\n.PP\n")}\n`),
    section("KEYS", `${item(bold("version"), plain("version of the format: 1. Required."))}${items.join("")}`),
    section(
      "EXAMPLE",
      `.nf\n${plain(exampleSettings())
        .replaceAll(/^(?=\.)/gm, "\\&")
        .replaceAll(/^$/gm, "\\&")}.fi\n`,
    ),
    section("SEE ALSO", ".BR dns11 (8)\n"),
  ].join("");
}
