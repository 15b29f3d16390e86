/**
 * Makes the graph say what a batch of lines says, in the caller's transaction.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * What the lines speak of is read at once, objects under lock; then each change
 * goes through the gateway. Of a line that says what is so already nothing is
 * written. Nearly always nothing is refused, so a batch is applied without
 * savepoints first; when something is, or when somebody else was faster, its
 * transaction is undone and done again with more care.
 */
import type { LineCounts } from "@tropism/api/transfer-api"
import type { Change } from "@tropism/domain/change"
import type { ObjectId } from "@tropism/domain/ids"
import { canonicalJson, isJsonObject, type Properties } from "@tropism/domain/json"
import type { LineEnd, ObjectLine, RelationshipLine } from "@tropism/domain/transfer-line"
import { untrustedNames, type Untrusted } from "@tropism/domain/untrusted"
import { Context, Effect, Layer, Result, Schema } from "effect"
import { Database, type ProjectTransaction } from "../database/database.ts"
import { Gateway } from "./gateway.ts"
import { ImportLookup, type KnownRelationship, type Pair, pairOf } from "./import-lookup.ts"
import { noCounts } from "./imports.ts"
import type { Author, Content } from "./recording.ts"
import type { ChangeRefused } from "./refused.ts"

/** Who imports, and whether all that is imported is untrusted. */
export interface BatchTerms {
  readonly author: Author
  readonly untrusted: boolean
}

/** A line that could be read. */
export interface ReadLine {
  readonly line: number
  readonly value: ObjectLine | RelationshipLine
}

/** What a batch did. */
export interface BatchOutcome {
  readonly counts: LineCounts
  readonly badLines: ReadonlyArray<{ readonly line: number; readonly message: string }>
}

/** The batch met something that it had not expected: undo its transaction and do it again, with more care. */
export class BatchUndone extends Schema.TaggedError<BatchUndone>()("BatchUndone", {}) {}

/**
 * How a batch is applied.
 *
 * - `quick`: without savepoints; the first refusal undoes it.
 * - `careful`: each line can be undone alone; what somebody else's write explains undoes the batch.
 * - `last`: like `careful`, and what was raced for is a bad line.
 */
export type BatchCare = "quick" | "careful" | "last"

export class ImportBatch extends Context.Service<
  ImportBatch,
  {
    /** Applies the lines in the caller's transaction. */
    readonly apply: (
      lines: ReadonlyArray<ReadLine>,
      terms: BatchTerms,
      care: BatchCare
    ) => Effect.Effect<BatchOutcome, BatchUndone, ProjectTransaction>
  }
>()("@tropism/server/graph/ImportBatch") {
  static readonly layer = Layer.effect(
    ImportBatch,
    Effect.gen(function* () {
      const database = yield* Database
      const gateway = yield* Gateway
      const lookup = yield* ImportLookup

      const apply = Effect.fn("ImportBatch.apply")(function* (
        lines: ReadonlyArray<ReadLine>,
        { author, untrusted: isUntrusted }: BatchTerms,
        care: BatchCare
      ) {
        const objectLines = lines.filter(isObjectLine)
        const relationshipLines = lines.filter(isRelationshipLine)
        const known = yield* lookup.objects(
          objectLines.map(({ value }) => value),
          relationshipLines.flatMap(({ value }) => [value.relationship.from, value.relationship.to])
        )
        const counts: { -readonly [K in keyof LineCounts]: number } = { ...noCounts }
        const badLines: Array<{ readonly line: number; readonly message: string }> = []
        const refuse = (line: number, message: string) =>
          Effect.sync(() => {
            counts.failed += 1
            badLines.push({ line, message })
          })

        const change = (wanted: Change) => gateway.apply(wanted, author)

        /** What of a line is untrusted: all, where the file is. The names were judged when the line was read. */
        const marksOf = ({ properties, untrusted }: ReadLine["value"]) =>
          Result.getOrElse(untrustedNames(isUntrusted || untrusted, properties ?? {}), () => [])

        /** Does what one line says. What is refused is undone: with the whole batch, or alone. */
        const each =
          <A extends ReadLine>(act: (line: A) => Effect.Effect<void, ChangeRefused, ProjectTransaction>) =>
          (line: A) =>
            Effect.catchTag(
              care === "quick" ? act(line) : database.attempt(act(line)),
              "ChangeRefused",
              (refusal) =>
                care === "quick" || (care === "careful" && raced.has(refusal.reason))
                  ? Effect.fail(new BatchUndone())
                  : refuse(line.line, sentenceOf(refusal))
            )

        const putObject = Effect.fnUntraced(function* ({ line, value }: ObjectReadLine) {
          const found = known.find(value)
          const other = value.id ? known.end(value.id) : undefined
          const properties = value.properties ?? {}
          const untrusted = marksOf(value)
          if (other && other !== found) {
            yield* refuse(line, `/id: ${value.id} is another object here than ${value.type} ${value.key}`)
          } else if (!found) {
            const { entity } = yield* change({
              type: "create",
              objectType: value.type,
              key: value.key ?? null,
              data: properties,
              untrusted
            })
            if (entity.kind === "object") known.made(value, entity.object, line)
            counts.created += 1
          } else if (found.type !== value.type) {
            yield* refuse(
              line,
              `/type: The object with the id ${value.id} is a ${found.type} here and no ${value.type}`
            )
          } else {
            const patch = contentTo(found, properties, untrusted)
            if (isEmpty(patch)) return void (counts.unchanged += 1)
            const applied = yield* change({
              type: "update",
              objectId: found.id,
              data: patch,
              untrusted: untrusted.filter((name) => Object.hasOwn(patch, name))
            })
            if (applied.entity.kind === "object") {
              found.properties = applied.entity.object.properties
              found.untrusted = applied.entity.object.untrusted
            }
            counts[applied.change === "unchanged" ? "unchanged" : "updated"] += 1
          }
        })

        /** An end must stand before the line that names it, so that what a file means does not depend on its batches. */
        const endId = (end: LineEnd, line: number): ObjectId | undefined => {
          const object = known.end(end)
          return object && object.line < line ? object.id : undefined
        }

        const pairFor = ({ line, value: { relationship } }: RelationshipReadLine): Pair | undefined => {
          const fromId = endId(relationship.from, line)
          const toId = endId(relationship.to, line)
          return fromId && toId && { type: relationship.type, fromId, toId }
        }

        const putRelationship = (present: Map<string, KnownRelationship>) =>
          Effect.fnUntraced(function* (one: RelationshipReadLine) {
            const pair = pairFor(one)
            if (!pair)
              return yield* refuse(
                one.line,
                noEnd(one, (end) => endId(end, one.line) !== undefined)
              )
            const before = present.get(pairOf(pair))
            const properties = one.value.properties ?? {}
            const untrusted = marksOf(one.value)
            const patch = contentTo(before ?? { properties: {}, untrusted: [] }, properties, untrusted)
            if (before && isEmpty(patch)) return void (counts.relationshipsUnchanged += 1)
            const { entity } = yield* change(
              before
                ? {
                    type: "updateRelationship",
                    relationshipId: before.id,
                    data: patch,
                    untrusted: untrusted.filter((name) => Object.hasOwn(patch, name))
                  }
                : { type: "createRelationship", relationship: pair, data: properties, untrusted }
            )
            if (entity.kind === "relationship") present.set(pairOf(pair), entity.relationship)
            counts[before ? "relationshipsUpdated" : "relationshipsCreated"] += 1
          })

        yield* Effect.forEach(objectLines, each(putObject), { discard: true })
        if (!(yield* lookup.remember(known.named()))) return yield* new BatchUndone()
        const present = yield* lookup.relationships(relationshipLines.flatMap((one) => pairFor(one) ?? []))
        yield* Effect.forEach(relationshipLines, each(putRelationship(present)), { discard: true })
        return { counts, badLines: badLines.toSorted((a, b) => a.line - b.line) }
      })

      return ImportBatch.of({ apply })
    })
  )
}

type ObjectReadLine = { readonly line: number; readonly value: ObjectLine }
type RelationshipReadLine = { readonly line: number; readonly value: RelationshipLine }

const isRelationshipLine = (one: ReadLine): one is RelationshipReadLine => "relationship" in one.value
const isObjectLine = (one: ReadLine): one is ObjectReadLine => !isRelationshipLine(one)

/** Refusals that another writer between our look and our write explains. */
const raced: ReadonlySet<string> = new Set(["keyTaken", "relationshipExists", "notFound", "version"])

const sentenceOf = ({ detail, pointer }: ChangeRefused): string =>
  pointer === undefined || pointer === "" ? detail : `${pointer}: ${detail}`

const noEnd = (
  { value: { relationship } }: RelationshipReadLine,
  isThere: (end: LineEnd) => boolean
): string => {
  const pointer = isThere(relationship.from) ? "to" : "from"
  const end = relationship[pointer]
  const what = typeof end === "string" ? `object ${end}` : `${end.type} with the key ${end.key}`
  return `/relationship/${pointer}: There is no ${what} in the graph or in an earlier line`
}

const isEmpty = (patch: Properties): boolean => Object.keys(patch).length === 0

/** What of a line is not so yet; a property that has another mark, or had one, is told whole, so that nothing of the old value is left. */
const contentTo = (before: Content, wanted: Properties, untrusted: Untrusted): Properties => {
  const whole = Object.entries(wanted).filter(
    ([name]) =>
      Object.hasOwn(before.properties, name) && before.untrusted.includes(name) !== untrusted.includes(name)
  )
  return { ...mergePatchTo(before.properties, wanted), ...Object.fromEntries(whole) }
}

/** What of a line's properties is not so yet, as a merge patch: null removes, objects merge, all else replaces. */
export const mergePatchTo = (before: Properties, wanted: Properties): Properties => {
  const patch = new Map<string, Schema.Json>()
  for (const [name, value] of Object.entries(wanted)) {
    const old = Object.hasOwn(before, name) ? before[name] : undefined
    if (isJsonObject(old) && isJsonObject(value)) {
      const inner = mergePatchTo(old, value)
      if (!isEmpty(inner)) patch.set(name, inner)
    } else if (canonicalJson(old ?? null) !== canonicalJson(value)) patch.set(name, value)
  }
  return Object.fromEntries(patch)
}
