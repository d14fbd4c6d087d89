/** DoctorModules: all that commands load to diagnose, as one module, for the reason in host-modules.ts. A run never does. */
export { bundleOf } from "../../src/doctor/bundle/bundle.ts";
export { diagnose } from "../../src/doctor/doctor.ts";
