/**
 * The page dns11.yaml(5): every key of the settings file, and its example.
 */
import type { Command } from "commander";

import type { Build } from "../build.ts";
import { exampleSettings } from "./example.ts";
import { settingsKeys, valueText } from "./keys.ts";
import { bold, heading, item, plain, section, wrapped } from "./roff.ts";

const ABOUT = [
  "What dns11 does can be said by flags, by the environment and in a settings file, which is YAML. For each key the first of " +
    "them that says anything counts, whole: a list replaces a list. A key that nobody says anything under has its default.",
  "The file is read at the start and at SIGHUP. Its first line is the version of its format. A key that is none, or a value " +
    "that does not fit, is told with its line, and nothing of such a file counts; dns11 check-config FILE says so beforehand.",
  "Times are seconds, or 250ms, 90s, 1h30m, 1d; sizes are bytes, or 64KiB, 32MiB, 1GiB. A key with a dot in its name here " +
    "is one in a map: cache.size is written as cache: {size: 32MiB}.",
];

export function settingsPage(program: Command, build: Build): string {
  const items = settingsKeys(program).map(({ key, does, takes, byDefault, underStrict, flag, variable }) => {
    const isOtherwise = valueText(byDefault) !== valueText(underStrict) && key !== "strict";
    const notes = [
      ...(takes === undefined || does.includes(takes.replace("one of ", "")) ? [] : [`takes: ${takes}`]),
      `default: ${valueText(byDefault) || "nothing"}${isOtherwise ? `, under strict: ${valueText(underStrict)}` : ""}`,
      ...(flag === undefined ? [] : [`flag: ${flag}`]),
      ...(variable === undefined ? [] : [`env: ${variable}`]),
    ];
    return item(
      bold(key),
      plain(`${does}. ${notes.map((note) => `${note.replace(/^./, (first) => first.toUpperCase())}.`).join(" ")}`),
    );
  });
  return [
    heading("DNS11.YAML", 5, build.day, `dns11 ${build.version}`),
    section("NAME", `${plain("dns11.yaml")} \\- settings of dns11\n`),
    section("DESCRIPTION", `${ABOUT.map((text) => wrapped(plain(text))).join("\n.PP\n")}\n`),
    section(
      "KEYS",
      `${item(bold("version"), plain("the version of the format: 1. It has to be there."))}${items.join("")}`,
    ),
    section(
      "EXAMPLE",
      `.nf\n${plain(exampleSettings(program))
        .replaceAll(/^(?=\.)/gm, "\\&")
        .replaceAll(/^$/gm, "\\&")}.fi\n`,
    ),
    section("SEE ALSO", ".BR dns11 (8)\n"),
  ].join("");
}
