// @ts-check
/** Release notes: what CHANGELOG.md says about a version, and how to install and verify it. */
import { readFileSync } from "node:fs";

/** @param {string} version @param {string} repository its address */
export function releaseNotes(version, repository) {
  const changes = changesOf(readFileSync("CHANGELOG.md", "utf8"), version);
  const base = `${repository}/releases/download/v${version}`;
  // Links between the files of the repository lead nowhere on the page of a release.
  const linked = changes.replaceAll(/\]\((?!https?:)([^)]+)\)/g, `](${repository}/blob/v${version}/$1)`);
  return `${linked}

### Install

\`\`\`sh
curl -fsSLO ${base}/install.sh
less install.sh
sudo sh install.sh --version ${version}
\`\`\`

Or download a file below. \`sha256sum --check --ignore-missing SHA256SUMS\` compares it with its hash, and
\`gh attestation verify FILE --repo ${repository.replace(/^https:\/\/github\.com\//, "")}\` shows from which commit it was built.
`;
}

/** @param {string} changelog @param {string} version */
function changesOf(changelog, version) {
  const parts = changelog.split(/^## /m);
  const part = parts.find((each) => each.split(/\s/, 1)[0] === version);
  if (part === undefined) {
    throw new Error(`CHANGELOG.md has no section "## ${version}": it names what users get with this release`);
  }
  const text = part.slice(part.indexOf("\n")).trim();
  if (text === "") throw new Error(`CHANGELOG.md: the section ${version} is empty`);
  return text;
}
