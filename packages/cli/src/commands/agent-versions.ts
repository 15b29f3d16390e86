/**
 * `tropism agents versions`, `diff` and `restore`: what an agent was, what changed, and the way back.
 */
import { Clock, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { inProject, readPages } from "../access.ts"
import { findAgent } from "../agents-by-name.ts"
import { differenceLines } from "../difference-lines.ts"
import { printOr, printRecords } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { formatAge } from "../terminal/time.ts"
import { limitFlag } from "./limit-flag.ts"

/** Versions are counted from 1. */
const VersionNumber = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

const agent = Argument.String("agent").pipe(Argument.withDescription("The agent's name or id"))

const version = (name: string, description: string) =>
  Flag.Int(name).pipe(
    Flag.withSchema(VersionNumber),
    Flag.withMetavar("<version>"),
    Flag.withDescription(description),
    Flag.optional
  )

export const versionsCommand = Command.make("versions", { agent, limit: limitFlag }, ({ agent, limit }) =>
  inProject((access) =>
    Effect.gen(function* () {
      const { paint } = yield* Screen
      const now = yield* Clock.currentTimeMillis
      const { id } = yield* findAgent(access, agent)
      const params = { ...access.params, agentId: id }
      const { hasMore, items } = yield* readPages(
        (query) => access.client.definitions.versions({ params, query }),
        limit
      )
      yield* printRecords({
        records: items,
        hasMore,
        nothing: "The agent has no versions.",
        columns: [
          { title: "VERSION", align: "right", cell: (one) => String(one.version) },
          {
            title: "AGE",
            align: "right",
            cell: (one) => formatAge(one.createdAt, now),
            paint: () => paint.dim
          },
          { title: "BY", cell: (one) => one.createdBy },
          {
            title: "CHANGED",
            shrinks: "end",
            cell: (one) =>
              [
                ...(one.restoredFrom === null ? [] : [`restored from ${one.restoredFrom}`]),
                ...one.changed.map((pointer) => pointer.slice(1).replaceAll("/", "."))
              ].join(", ")
          }
        ]
      })
    })
  )
).pipe(Command.withDescription("List an agent's versions with their changes"))

export const diffCommand = Command.make(
  "diff",
  {
    agent,
    from: version("from", "The version to compare with (default: the previous one)"),
    to: version("to", "The version to compare (default: the current one)")
  },
  ({ agent, from, to }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const screen = yield* Screen
        const found = yield* findAgent(access, agent)
        const diff = yield* access.client.definitions.diff({
          params: { ...access.params, agentId: found.id, version: Option.getOrElse(to, () => found.version) },
          query: Option.isSome(from) ? { from: from.value } : {}
        })
        const lines = differenceLines(diff.changes, screen.paint)
        yield* printOr(
          diff,
          screen.print(
            `${found.name}: version ${diff.from ?? 0} → ${diff.to}`,
            ...(lines.length === 0 ? ["  No differences."] : lines)
          )
        )
      })
    )
).pipe(Command.withDescription("Compare two versions of an agent"))

export const restoreCommand = Command.make(
  "restore",
  {
    agent,
    version: Argument.Int("version").pipe(
      Argument.withSchema(VersionNumber),
      Argument.withDescription("The version to restore")
    )
  },
  ({ agent, version }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const screen = yield* Screen
        const { id } = yield* findAgent(access, agent)
        const restored = yield* access.client.definitions.restore({
          params: { ...access.params, agentId: id, version },
          headers: {}
        })
        yield* printOr(
          restored,
          screen.print(`${restored.name} has version ${restored.version}, restored from version ${version}.`)
        )
      })
    )
).pipe(Command.withDescription("Restore an old version as a new one"))
