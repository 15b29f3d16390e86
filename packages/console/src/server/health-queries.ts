/**
 * Reads how a project fares; the page reads it again all the time, for what is mended is no event of the graph.
 */
import type { ProjectHealth } from "@tropism/domain/health"
import { limits } from "../limits.ts"
import { reading } from "./reading.ts"

export const healthQuery = (projectId: string) =>
  reading<ProjectHealth>({
    projectId,
    key: ["health"],
    path: "health",
    refreshMs: limits.refreshIntervalMs
  })
