/**
 * The hashes by which a suggestion is found again, made anew where its ids are others in a copy.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, all on **database**
 *
 * What was rejected and what waits is known by a hash over the change, ids
 * included. One that was made of anything else stays as it is.
 */
import { createHash } from "node:crypto"
import { Change, digestText } from "@tropism/domain/change"
import type { DumpTable } from "@tropism/domain/dump"
import { isJsonObject } from "@tropism/domain/json"
import { creationText } from "@tropism/domain/suggestion"
import { Schema } from "effect"

const hashed: ReadonlySet<string> = new Set(["tasks", "task_revisions"])

/** A row of the copy with the hashes over what it says there; `before` is the row as the dump has it. */
export const rehashed = ({ name }: DumpTable, before: string, after: string): string => {
  if (before === after || !hashed.has(name)) return after
  const made = hashesOf(after)
  return hashesOf(before).reduce((text, hash, index) => text.replaceAll(hash, made[index] ?? hash), after)
}

/** That of the change, and the one that stands for the key of a creation without one. */
const hashesOf = (text: string): ReadonlyArray<string> => {
  const row: unknown = JSON.parse(text)
  if (!isJsonObject(row) || !isJsonObject(row.payload)) return []
  const change = row.payload.suggestedChanges
  if (!isChange(change)) return []
  const about = Array.isArray(row.about) ? row.about.map(String) : []
  return [digestText(change), creationText(change, about)].map((words) =>
    createHash("sha256").update(words, "utf8").digest("hex")
  )
}

const isChange = Schema.is(Change)
