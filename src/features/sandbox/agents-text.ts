/** AgentsText: what a program, or an agent, in a sandbox is told, as a section of its AGENTS.md. */
export const AGENTS_TEXT = `## Network access

This container may resolve and reach only names that its user has allowed. dns11 holds it to that from outside: nothing in the
container can change it, and trying another name server, a proxy, an address or another port does not help.

- A refused name does not exist (NXDOMAIN): programs say "could not resolve host" or "bad address".
- A refused address resets the connection at once ("connection refused"), or is unreachable.
- To learn why, ask for a TXT record below why.dns11.alt:
  \`nslookup -type=txt NAME.why.dns11.alt\`
  It answers "allowed" or "refused", and the rule.
- An address opens when its name is resolved. Resolve the name again where an old address does not answer any more.
- If you need a name that is refused, do not work around it: tell your user the exact name, what you need it for, and the line
  \`dns11 policy\` shows them, or that they can start you again with \`--allow NAME\`.
`;
