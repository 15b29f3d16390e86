/**
 * The lockfile of a small shop, as stories import it: before an update of it and after.
 */
import { fileOf } from "./lockfiles.ts"

export const before = fileOf({
  "": { name: "shop", dependencies: { paint: "^1.0.0", rope: "^1.0.0", nail: "^2.0.0" } },
  "node_modules/paint": { version: "1.0.0", license: "MIT", dependencies: { oil: "*" } },
  "node_modules/oil": { version: "3.1.4" },
  "node_modules/rope": { version: "1.2.0" },
  "node_modules/nail": { version: "2.0.0" }
})

/** Paint has a new version, rope is gone, glue has come; oil and nail are what they were. */
export const after = fileOf({
  "": { name: "shop", dependencies: { paint: "^1.0.0", nail: "^2.0.0", glue: "^1.0.0" } },
  "node_modules/paint": { version: "1.1.0", license: "MIT", dependencies: { oil: "*" } },
  "node_modules/oil": { version: "3.1.4" },
  "node_modules/nail": { version: "2.0.0" },
  "node_modules/glue": { version: "1.0.0", dependencies: { oil: "^3.0.0" } }
})
