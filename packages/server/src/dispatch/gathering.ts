/**
 * Decides which waiting entries of an agent begin a run together, and why the
 * others wait on.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * Pure: it reads what the releaser found under the agent's lock. A line (the
 * entries of one object) is released from its front, in the order of versions.
 */
import {
  dueMs,
  isExclusive,
  standsInLine,
  takesLine,
  type Wait,
  waitSentences
} from "@tropism/domain/waiting"
import type { ReactionConfig } from "@tropism/domain/reaction"
import { dispatchLimits } from "../limits.ts"
import type { Look, Postponed, WaitingEntry } from "../run/waiting-entries.ts"
import type { AgentId } from "@tropism/domain/ids"
import type { Allowance } from "./standing.ts"

export interface Gathering {
  /** The entries of each run that may begin, in the order of their events. */
  readonly groups: ReadonlyArray<ReadonlyArray<WaitingEntry>>
  readonly postponed: ReadonlyArray<Postponed>
}

/** How an agent's waiting entries are to be read. */
export const lookOf = (id: AgentId, config: ReactionConfig, most: number): Look => {
  const { batchSize, debounceMs } = config
  return {
    id,
    heads: batchSize * Math.max(1, Math.floor(most / batchSize)),
    batch: batchSize,
    ofLine: standsInLine(config) ? (takesLine(config) ? runMaxEvents(config) : 1) : null,
    needsNewest: debounceMs > 0 && batchSize === 1
  }
}

const runMaxEvents = ({ batchSize }: ReactionConfig): number =>
  batchSize > 1 ? batchSize : dispatchLimits.runMaxEvents

/** Forms runs from the entries that were read, as many as are allowed. */
export const gather = (
  config: ReactionConfig,
  entries: ReadonlyArray<WaitingEntry>,
  busy: ReadonlySet<string>,
  allowance: Allowance,
  nowMs: number
): Gathering => {
  const unique = [...new Map(entries.map((entry) => [entry.id, entry])).values()]
  const free = unique.filter((entry) => !busy.has(entry.graphObjectId))
  const lines = [...Map.groupBy(free, (entry) => entry.graphObjectId).values()].map((line) =>
    line.toSorted((a, b) => a.objectVersion - b.objectVersion || a.attempt - b.attempt)
  )
  const { later, ready } = formed(config, lines, nowMs)
  const groups = ready.slice(0, allowance.runs)
  const released = new Set(groups.flat().map((entry) => entry.id))
  const taken = isExclusive(config) ? new Set(groups.flat().map((entry) => entry.graphObjectId)) : noObjects
  const heads = new Map(entries.map((entry) => [entry.headId, entry]))
  const postponed = [...heads]
    .filter(([id]) => !released.has(id))
    .map(([id, entry]): Postponed => {
      const isBehind = busy.has(entry.graphObjectId) || taken.has(entry.graphObjectId)
      if (isBehind) return { id, dueAt: null, isParked: true, reason: waitSentences.object }
      const due = later.get(entry.id)
      const wait: Wait = due === undefined ? allowance.wait : config.debounceMs > 0 ? "debounce" : "batch"
      return {
        id,
        // Of a batch, one entry brings the releaser back in time for all.
        dueAt: due !== undefined && (entry.isDue || due.isFirst) ? new Date(due.atMs).toISOString() : null,
        isParked: false,
        reason: waitSentences[wait]
      }
    })
  return { groups: groups.map(inEventOrder), postponed }
}

const noObjects: ReadonlySet<string> = new Set()

interface Formed {
  readonly ready: ReadonlyArray<ReadonlyArray<WaitingEntry>>
  /** Entries whose time has not come, with that time. */
  readonly later: ReadonlyMap<WaitingEntry["id"], { readonly atMs: number; readonly isFirst: boolean }>
}

/** A run is about the graph or about what foreign servers told, never about both. */
const formed = (
  config: ReactionConfig,
  lines: ReadonlyArray<ReadonlyArray<WaitingEntry>>,
  nowMs: number
): Formed => {
  const kinds = Map.groupBy(lines, ([entry]) => entry?.entityType === "mcpEvent")
  const parts = [...kinds.values()].map((kind) =>
    config.batchSize > 1 ? batches(config, kind, nowMs) : singles(config, kind, nowMs)
  )
  return {
    ready: parts.flatMap(({ ready }) => ready),
    later: new Map(parts.flatMap(({ later }) => [...later]))
  }
}

/** One run for an entry, or for a line. */
const singles = (
  config: ReactionConfig,
  lines: ReadonlyArray<ReadonlyArray<WaitingEntry>>,
  nowMs: number
): Formed => {
  if (!standsInLine(config)) return { ready: lines.flat().map((entry) => [entry]), later: new Map() }
  const ready: Array<ReadonlyArray<WaitingEntry>> = []
  const later = new Map<WaitingEntry["id"], { readonly atMs: number; readonly isFirst: boolean }>()
  for (const line of lines) {
    const atMs = lineDueMs(config, line)
    if (atMs > nowMs) for (const entry of line) later.set(entry.id, { atMs, isFirst: true })
    else ready.push(takesLine(config) ? line : line.slice(0, 1))
  }
  return { ready, later }
}

const lineDueMs = (config: ReactionConfig, line: ReadonlyArray<WaitingEntry>): number => {
  if (config.debounceMs === 0) return 0
  const came = line.map((entry) => entry.createdAt.getTime())
  const newest = line.map((entry) => entry.newestAt?.getTime() ?? 0)
  return dueMs(config, Math.min(...came), Math.max(...came, ...newest))
}

/** One run for each full batch, and for a part of one whose time has come. */
const batches = (
  config: ReactionConfig,
  lines: ReadonlyArray<ReadonlyArray<WaitingEntry>>,
  nowMs: number
): Formed => {
  const chunks = chunksOf(config, lines)
  const last = chunks.at(-1) ?? []
  if (last.length === 0 || last.length === config.batchSize) return { ready: chunks, later: new Map() }
  const came = last.map((entry) => entry.createdAt.getTime())
  const atMs = dueMs(config, Math.min(...came), Math.max(...came))
  // A retry comes when its own time has come, however few there are.
  if (atMs <= nowMs || last.some((entry) => entry.attempt > 1)) return { ready: chunks, later: new Map() }
  return {
    ready: chunks.slice(0, -1),
    later: new Map(last.map((entry, index) => [entry.id, { atMs, isFirst: index === 0 }]))
  }
}

/** Lines cut to the size of a batch. An object that is worked on alone is in one of them: the rest of its line waits for that run. */
const chunksOf = (
  config: ReactionConfig,
  lines: ReadonlyArray<ReadonlyArray<WaitingEntry>>
): ReadonlyArray<ReadonlyArray<WaitingEntry>> => {
  const chunks: Array<Array<WaitingEntry>> = []
  for (const line of lines) {
    for (const [index, entry] of line.entries()) {
      const chunk = chunks.at(-1)
      if (chunk !== undefined && chunk.length < config.batchSize) chunk.push(entry)
      else if (index > 0 && isExclusive(config)) break
      else chunks.push([entry])
    }
  }
  return chunks
}

const inEventOrder = (entries: ReadonlyArray<WaitingEntry>): ReadonlyArray<WaitingEntry> =>
  entries.toSorted((a, b) => a.seq - b.seq)
