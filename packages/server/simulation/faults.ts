/**
 * What goes wrong in a simulation, and how it strikes.
 *
 * A fault strikes when the servers have sent so many statements or commits, when one of
 * them passes a named crash point for the n-th time, or when so many requests
 * were made of models. It is drawn before anything begins (`drawing-faults.ts`);
 * from the moment at which the plan is ended nothing strikes any more.
 */
import type { CrashPointName } from "../src/crash-point.ts"
import type { Fate } from "./conductor.ts"
import { isCommit, isRefusal, mayBeRefused, wordsOf } from "./refusals.ts"
import { brokenWords } from "./statement.ts"

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

/** How one request of a model goes wrong: whoever asks again is answered, but where it is `hung`, which no further try of it is either. */
export type Lapse = "refused" | "hasty" | "cut" | "cutWithin" | "silent" | "hung"

export type Fault =
  | { readonly kind: "statement"; readonly at: number; readonly fate: Exclude<Fate, "go"> }
  /** A commit is done, and its answer is lost with the connection. */
  | { readonly kind: "commit"; readonly at: number }
  | { readonly kind: "crashPoint"; readonly name: CrashPointName; readonly passing: number }
  | { readonly kind: "request"; readonly at: number; readonly lapse: Lapse }
  | { readonly kind: "deed"; readonly at: number; readonly deed: Deed }

export interface FaultPlan {
  /** From here on faults strike; before, nothing is counted. */
  readonly begin: () => void
  /** From here on nothing strikes. */
  readonly end: () => void
  readonly hasEnded: () => boolean
  /** Counts a statement of a server and says what becomes of it. */
  readonly statement: (text: string) => Fate
  /** Counts a request of a model and says how it goes wrong, if it does. */
  readonly request: () => Lapse | undefined
  /** Counts a passing; true when the server dies there. */
  readonly passes: (name: CrashPointName) => boolean
  /** Whether somebody has died at a crash point. */
  readonly hasStruck: (name: CrashPointName) => boolean
  /** What has struck so far, for the report. */
  readonly struck: ReadonlyArray<Fault>
}

/** Follows a plan; deeds are handed to whoever does them. */
export const followFaults = (faults: ReadonlyArray<Fault>, doDeed: (deed: Deed) => void): FaultPlan => {
  const pending = new Set(faults)
  const struck: Array<Fault> = []
  const passings = new Map<CrashPointName, number>()
  let isOn = false
  let hasEnded = false
  let statements = 0
  let commits = 0
  let requests = 0
  const strike = (fault: Fault): void => {
    pending.delete(fault)
    struck.push(fault)
  }
  return {
    struck,
    begin: () => void (isOn = true),
    end: () => {
      isOn = false
      hasEnded = true
    },
    hasEnded: () => hasEnded,
    hasStruck: (name) => struck.some((fault) => fault.kind === "crashPoint" && fault.name === name),
    statement: (text) => {
      if (!isOn) return "go"
      statements += 1
      if (isCommit(text)) commits += 1
      for (const fault of pending) {
        if (fault.kind === "statement" && fault.at <= statements && mayStrike(fault.fate, text)) {
          strike(fault)
          return fault.fate
        }
        if (fault.kind === "commit" && fault.at <= commits && isCommit(text)) {
          strike(fault)
          return "breakAfter"
        }
        if (fault.kind === "deed" && fault.at <= statements) {
          strike(fault)
          doDeed(fault.deed)
        }
      }
      return "go"
    },
    request: () => {
      if (!isOn) return undefined
      requests += 1
      for (const fault of pending) {
        if (fault.kind !== "request" || fault.at > requests) continue
        strike(fault)
        return fault.lapse
      }
      return undefined
    },
    passes: (name) => {
      if (!isOn) return false
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

const mayStrike = (fate: Exclude<Fate, "go">, text: string): boolean =>
  !isRefusal(fate) || mayBeRefused(text, fate)

/** Words of an error by which a log may tell of a fault; none where a server has no reason to log one. */
export const wordsOfFault = (fault: Fault): ReadonlyArray<string> => {
  if (fault.kind === "commit") return [brokenWords]
  if (fault.kind !== "statement") return []
  if (isRefusal(fault.fate)) return [wordsOf(fault.fate)]
  return fault.fate.startsWith("break") ? [brokenWords] : []
}
