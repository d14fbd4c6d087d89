// Docker 20.10 under siege.
import { besiege } from "./besiege.ts";

besiege("bookworm");
