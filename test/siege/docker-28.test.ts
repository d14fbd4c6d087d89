// Docker 28.5 under siege.
import { besiege } from "./besiege.ts";

besiege("forky");
