/**
 * Executes its arguments in a process to which the kernel refuses bpf(2), as an older kernel, a lockdown or a sandbox
 * does.
 */
import { execute } from "../../../src/kernel/libc.ts";
import { denyCalls } from "../../../src/kernel/seccomp.ts";

denyCalls(["bpf"]);
execute("/usr/bin/env", ["env", ...process.argv.slice(2)]);
