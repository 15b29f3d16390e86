/**
 * The first tier of the tests, for `npm test`.
 */
import { defineConfig } from "vitest/config"
import { tierConfig } from "./scripts/tiers.ts"

export default defineConfig(tierConfig("first"))
