/**
 * Lockfiles for tests, written down as the entries of their `packages`.
 *
 * Everything goes through the text, as an import does.
 */
import type { Properties } from "@tropism/domain/json"
import { Cause, Effect, Exit, type Schema } from "effect"
import { InvalidLockfile, type LockGraph, readPackageLock } from "../src/graph/import/package-lock.ts"

export type Entries = Readonly<Record<string, Schema.Json>>

export const fileOf = (packages: Entries, more: Entries = {}): string =>
  JSON.stringify({ name: "shop", lockfileVersion: 3, requires: true, packages, ...more })

export const read = (packages: Entries, more: Entries = {}): LockGraph =>
  Effect.runSync(readPackageLock(fileOf(packages, more)))

/** The refusal of a text; anything else, a defect above all, is thrown. */
export const refusal = (text: string): InvalidLockfile => {
  const exit = Effect.runSyncExit(readPackageLock(text))
  const error = Exit.isSuccess(exit) ? new Error("The text was read") : Cause.squash(exit.cause)
  if (error instanceof InvalidLockfile) return error
  throw error
}

export const propertiesOf = (graph: LockGraph, key: string): Properties | undefined =>
  graph.packages.find((each) => each.key === key)?.properties

/** Each dependency as one line: from → to (kind range). */
export const edges = (graph: LockGraph): ReadonlyArray<string> =>
  graph.dependencies.map(
    ({ fromKey, toKey, properties }) => `${fromKey} → ${toKey} (${properties.kind} ${properties.range})`
  )
