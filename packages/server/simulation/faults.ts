/**
 * What goes wrong in a simulation, and when: drawn from the seed before it begins.
 *
 * A fault strikes when the servers have sent so many statements, or when one of
 * them passes a named crash point for the n-th time. Between any two statements
 * a server may die: before it sends one, or after PostgreSQL has done it and
 * before the server knows.
 */
import type { CrashPointName } from "../src/crash-point.ts"
import type { Chance } from "./chance.ts"
import type { Fate } from "./conductor.ts"

/** A deed of the world around the servers. */
export type Deed =
  /** The server gets no turn for a while, as a machine that swaps or a paused container. */
  | { readonly type: "freeze"; readonly turns: number; readonly leasesLapse: boolean }
  /** Every lease runs out, as after half a minute in which nobody was heard. */
  | { readonly type: "lapse" }
  /** Five minutes pass: leases run out and entries look stuck. */
  | { readonly type: "night" }
  /** The server is told to stop and does so in order. */
  | { readonly type: "stop" }

export type Fault =
  | { readonly kind: "statement"; readonly at: number; readonly fate: Exclude<Fate, "go"> }
  | { readonly kind: "crashPoint"; readonly name: CrashPointName; readonly passing: number }
  | { readonly kind: "deed"; readonly at: number; readonly deed: Deed }

/** Every named place; a name that the server does not know would not compile. */
const places: Readonly<Record<CrashPointName, true>> = {
  "graph.beforeCommit": true,
  "graph.afterCommit": true,
  "dispatch.beforeCommit": true,
  "dispatch.afterCommit": true,
  "release.beforeCommit": true,
  "release.afterCommit": true,
  "run.afterClaim": true,
  "run.afterTurnStarted": true,
  "run.afterFlowStep": true,
  "run.beforeModel": true,
  "run.afterModel": true,
  "run.beforeSummary": true,
  "run.afterSummary": true,
  "run.afterNotes": true,
  "run.afterStep": true,
  "run.afterDebounce": true,
  "run.afterWait": true,
  "run.afterSpawn": true,
  "run.afterReport": true,
  "run.beforeForeignCall": true,
  "run.afterForeignCall": true,
  "tool.beforeCommit": true,
  "tool.afterCommit": true,
  "run.beforeComplete": true,
  "run.afterComplete": true,
  "chat.beforeCommit": true,
  "chat.afterCommit": true,
  "task.beforeChange": true,
  "task.beforeCommit": true,
  "task.afterCommit": true,
  "schedule.beforeCommit": true,
  "schedule.afterCommit": true,
  "backtest.beforeBegun": true,
  "backtest.beforeQueued": true,
  "backtest.afterCommit": true,
  "source.afterClaim": true,
  "source.beforeKeep": true,
  "source.beforeCommit": true,
  "source.afterCommit": true,
  "delivery.beforeRecord": true
}
const [firstPlace, ...otherPlaces] = Object.keys(places) as [CrashPointName, ...Array<CrashPointName>]

/** Most faults come early, since the busy part of a run does. */
const statementsBeforeFault = 700

export const drawFaults = (chance: Chance): ReadonlyArray<Fault> =>
  chance.oneIn(6) ? drawStorm(chance) : Array.from({ length: chance.between(1, 4) }, () => drawFault(chance))

/** Leases run out again and again: attempts overlap, and some runs use up all of theirs. */
const drawStorm = (chance: Chance): ReadonlyArray<Fault> => {
  const first = chance.between(60, 200)
  const distance = chance.between(8, 60)
  return Array.from({ length: chance.between(3, 8) }, (_, index) => ({
    kind: "deed",
    at: first + index * distance,
    deed: { type: "lapse" }
  }))
}

const drawFault = (chance: Chance): Fault => {
  const at = Math.floor(statementsBeforeFault * chance.next() * chance.next()) + 1
  switch (chance.below(8)) {
    case 0:
    case 1:
    case 2:
      return {
        kind: "crashPoint",
        name: chance.pick([firstPlace, ...otherPlaces]),
        passing: chance.between(1, 4)
      }
    case 3:
    case 4:
      return { kind: "statement", at, fate: chance.pick(["dieBefore", "dieAfter"]) }
    case 5:
      return { kind: "statement", at, fate: chance.pick(["breakBefore", "breakAfter"]) }
    default:
      return { kind: "deed", at, deed: drawDeed(chance) }
  }
}

const drawDeed = (chance: Chance): Deed => {
  switch (chance.below(5)) {
    case 0:
      return { type: "stop" }
    case 1:
      return { type: "night" }
    case 2:
      return { type: "lapse" }
    default:
      return { type: "freeze", turns: chance.between(10, 300), leasesLapse: !chance.oneIn(3) }
  }
}

export interface FaultPlan {
  /** From here on faults strike; before, nothing is counted. */
  readonly begin: () => void
  /** Counts a statement of a server and says what becomes of it. */
  readonly statement: () => Fate
  /** Counts a passing; true when the server dies there. */
  readonly passes: (name: CrashPointName) => boolean
  /** What has struck so far, for the report. */
  readonly struck: ReadonlyArray<Fault>
}

/** Follows a plan; deeds are handed to whoever does them. */
export const followFaults = (faults: ReadonlyArray<Fault>, doDeed: (deed: Deed) => void): FaultPlan => {
  const pending = new Set(faults)
  const struck: Array<Fault> = []
  const passings = new Map<CrashPointName, number>()
  let hasBegun = false
  let statements = 0
  const strike = (fault: Fault): void => {
    pending.delete(fault)
    struck.push(fault)
  }
  return {
    struck,
    begin: () => void (hasBegun = true),
    statement: () => {
      if (!hasBegun) return "go"
      statements += 1
      for (const fault of pending) {
        if (fault.kind === "crashPoint" || fault.at > statements) continue
        strike(fault)
        if (fault.kind === "statement") return fault.fate
        doDeed(fault.deed)
      }
      return "go"
    },
    passes: (name) => {
      if (!hasBegun) return false
      const passing = (passings.get(name) ?? 0) + 1
      passings.set(name, passing)
      for (const fault of pending) {
        if (fault.kind !== "crashPoint" || fault.name !== name || fault.passing !== passing) continue
        strike(fault)
        return true
      }
      return false
    }
  }
}
