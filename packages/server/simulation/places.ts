/**
 * The crash points of the server, and what a world must have so that somebody passes them.
 *
 * Each seed has one that it aims at, in turn, and its world has whom that needs.
 * So a row of as many seeds as there are crash points aims at every one of them.
 */
import type { CrashPointName } from "../src/crash-point.ts"

/** What only some worlds have. */
export type Part =
  /** An agent that suggests, so that people decide. */
  | "suggester"
  /** An agent whose work waits before it begins. */
  | "waiter"
  /** An agent that goes through several steps. */
  | "walker"
  /** An agent that asks others to help. */
  | "family"
  /** Agents that call tools of a foreign server, or hear one. */
  | "shop"
  | "radio"
  | "riser"
  | "talker"
  /** A context of which notes and a summary are kept. */
  | "diary"
  | "tester"
  | "subscriber"

/** Every crash point, with what it takes to be passed; a name that the server does not know would not compile. */
const needs: Readonly<Record<CrashPointName, Part | undefined>> = {
  "graph.beforeCommit": undefined,
  "graph.afterCommit": undefined,
  "dispatch.beforeCommit": undefined,
  "dispatch.afterCommit": undefined,
  "release.beforeCommit": "waiter",
  "release.afterCommit": "waiter",
  "run.afterClaim": undefined,
  "run.afterTurnStarted": undefined,
  "run.afterFlowStep": "walker",
  "run.beforeModel": undefined,
  "run.afterModel": undefined,
  "run.beforeSummary": "diary",
  "run.afterSummary": "diary",
  "run.afterNotes": "diary",
  "run.afterStep": undefined,
  "run.afterDebounce": "talker",
  "run.afterWait": "family",
  "run.afterSpawn": "family",
  "run.afterReport": "family",
  "run.beforeForeignCall": "shop",
  "run.afterForeignCall": "shop",
  "tool.beforeCommit": undefined,
  "tool.afterCommit": undefined,
  "run.beforeComplete": undefined,
  "run.afterComplete": undefined,
  "chat.beforeCommit": "talker",
  "chat.afterCommit": "talker",
  "task.beforeChange": "suggester",
  "task.beforeCommit": "suggester",
  "task.afterCommit": "suggester",
  "schedule.beforeCommit": "riser",
  "schedule.afterCommit": "riser",
  "backtest.beforeBegun": "tester",
  "backtest.beforeQueued": "tester",
  "backtest.afterCommit": "tester",
  "source.afterClaim": "radio",
  "source.beforeKeep": "radio",
  "source.beforeCommit": "radio",
  "source.afterCommit": "radio",
  "delivery.beforeRecord": "subscriber",
  // Behind the others, whose seeds stay theirs.
  "batch.beforeCommit": undefined,
  "batch.afterCommit": undefined
}

export const places = Object.keys(needs) as [CrashPointName, ...Array<CrashPointName>]

/** The crash point that a seed aims at. */
export const aimOf = (seed: number): CrashPointName => places[Math.abs(seed) % places.length] ?? places[0]

/** The seeds that aim at a crash point, from 0 on. */
export function* seedsAimedAt(name: CrashPointName): Generator<number, never> {
  for (let seed = places.indexOf(name); ; seed += places.length) yield seed
}

/** What the world of a seed has for the sake of that. */
export const partFor = (seed: number): Part | undefined => needs[aimOf(seed)]
