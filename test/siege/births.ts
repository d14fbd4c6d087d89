// Births: containers whose first instruction sends what is not allowed, in many ways at once; and what is, which must succeed.
import { type Container } from "../support/engine/container.ts";
import { MARK } from "../support/packets/hostile-frames.ts";
import { ALLOWED, DENIED, NAME_SERVER, type Siege } from "./siege.ts";

const AT_ONCE = 4;

export interface Births {
  readonly count: number;
  // What went wrong with what is allowed, in the words of the container.
  readonly refused: readonly string[];
}

// The first query is the first instruction. What is not allowed ends by itself, or after a second.
function scriptOf(name: string): string {
  const secret = `${MARK}-${name}.ok.test`;
  return [
    `nslookup ${secret} >/dev/null 2>&1`,
    `timeout 1 nc ${DENIED.address} ${DENIED.port} </dev/null >/dev/null 2>&1`,
    `timeout 1 nslookup ${secret} ${NAME_SERVER} >/dev/null 2>&1`,
    // Docker's resolver asks for both versions of the address, and fails if either does.
    `nslookup ${ALLOWED.name} >/tmp/answer 2>&1 || { echo "no answer: $(cat /tmp/answer)"; exit 1; }`,
    `test "$(timeout 5 nc ${ALLOWED.address} 443 </dev/null | head -c 2)" = ok || { echo "no connection"; exit 1; }`,
  ].join("; ");
}

export async function births(siege: Siege, count: number, network = "agents"): Promise<Births> {
  const refused: string[] = [];
  let begun = 0;
  const line = async (): Promise<void> => {
    for (;;) {
      begun += 1;
      if (begun > count) return;
      const name = `born-${network}-${begun}`;
      const born = await siege.run({ name, networks: [network], command: ["sh", "-c", scriptOf(name)] });
      const { StatusCode: code } = (await siege.engine.post(`/containers/${born.id}/wait`)) as { StatusCode: number };
      if (code !== 0) refused.push(`${name}: ${await logOf(siege, born)}`);
      await born.remove();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, line));
  return { count, refused };
}

async function logOf({ engine }: Siege, { id }: Container): Promise<string> {
  return (await engine.docker("logs", id)).trim();
}
