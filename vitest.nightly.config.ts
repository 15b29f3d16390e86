/**
 * What tests show in minutes to hours, for `npm run soak` and so for `npm run nightly`.
 */
import { defineConfig } from "vitest/config"
import { tierConfig } from "./scripts/tiers.ts"

export default defineConfig(tierConfig("nightly"))
