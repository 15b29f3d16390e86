/**
 * The deep tier of the tests, for `npm run test:deep`.
 */
import { defineConfig } from "vitest/config"
import { tierConfig } from "./scripts/tiers.ts"

export default defineConfig(tierConfig("deep"))
