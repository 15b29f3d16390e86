/**
 * Reads of runs.
 */
import type { Chain } from "@tropism/api/chains-api"
import type { Page } from "@tropism/api/page"
import type { ToolCallRecord } from "@tropism/api/runs-api"
import type { ModelCall, ModelExchange, OpenRequest, RunStep } from "@tropism/domain/model-call"
import type { Replay } from "@tropism/domain/replay"
import type { Run } from "@tropism/domain/run"
import type { RunObjects } from "@tropism/domain/run-objects"
import { limits } from "../limits.ts"
import { reading } from "./reading.ts"

const runPath = (runId: string, rest = ""): string => `runs/${encodeURIComponent(runId)}${rest}`
const wholePage = { limit: limits.rowsPerPage }

export const runQuery = (projectId: string, runId: string) =>
  reading<Run>({
    projectId,
    key: ["run", runId],
    path: runPath(runId),
    refreshMs: limits.refreshIntervalMs
  })

/** The newest runs whose summary or error says these words. */
export const runSearchQuery = (projectId: string, words: string, limit: number) =>
  reading<Page<Run>>({
    projectId,
    key: ["runs", "search"],
    path: "runs",
    parameters: { query: words, limit }
  })

/** The newest runs that rest, whatever for. */
export const pausedRunsQuery = (projectId: string) =>
  reading<Page<Run>>({
    projectId,
    key: ["runs", "paused"],
    path: "runs",
    parameters: { status: "paused", ...wholePage },
    refreshMs: limits.longListRefreshIntervalMs
  })

/** What the chain of a run has used of what it may. */
export const chainHeadQuery = (projectId: string, rootEventId: string) =>
  reading<Chain>({
    projectId,
    key: ["chain-head", rootEventId],
    path: `chains/${encodeURIComponent(rootEventId)}`,
    parameters: { limit: 1 },
    refreshMs: limits.longListRefreshIntervalMs
  })

export const runStepsQuery = (projectId: string, runId: string) =>
  reading<Page<RunStep>>({
    projectId,
    key: ["run-steps", runId],
    path: runPath(runId, "/steps"),
    parameters: wholePage
  })

export const runObjectsQuery = (projectId: string, runId: string) =>
  reading<RunObjects>({
    projectId,
    key: ["run-objects", runId],
    path: runPath(runId, "/objects"),
    refreshMs: limits.refreshIntervalMs
  })

export const runReplayQuery = (projectId: string, runId: string) =>
  reading<Replay>({ projectId, key: ["run-replay", runId], path: runPath(runId, "/replay") })

export const runToolCallsQuery = (projectId: string, runId: string) =>
  reading<Page<ToolCallRecord>>({
    projectId,
    key: ["run-tool-calls", runId],
    path: runPath(runId, "/tool-calls"),
    parameters: wholePage
  })

export const modelCallsQuery = (projectId: string, runId: string) =>
  reading<Page<ModelCall>>({
    projectId,
    key: ["model-calls", runId],
    path: runPath(runId, "/model-calls"),
    parameters: wholePage
  })

/** The request that nobody has answered, at a place of the log or, without one, wherever the run stands. */
export const openRequestQuery = (projectId: string, runId: string, afterEvent?: number) =>
  reading<{ readonly request: OpenRequest | null }>({
    projectId,
    key: ["open-request", runId, afterEvent ?? null],
    path: runPath(runId, "/open-request")
  })

export const modelCallQuery = (projectId: string, runId: string, number: number) =>
  reading<ModelExchange>({
    projectId,
    key: ["model-call", runId, number],
    path: runPath(runId, `/model-calls/${number}`)
  })
