/**
 * A dump as a file that is here: received whole, judged whole, then read line by line as often as needed.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, all on **database**
 *
 * The file has no name from the moment it is opened, so nothing of it is left
 * behind however this program ends. No more of it than one line is in memory.
 */
import { createHash } from "node:crypto"
import { DumpEnd, dumpFormat, DumpHead, endLineOf, rowsIn } from "@tropism/domain/dump"
import { Context, Effect, FileSystem, Option, Path, Schema, Stream } from "effect"
import { dumpLimits } from "./dump-limits.ts"
import { dumpParts } from "./dump-plan.ts"
import { schemaVersion } from "./migrations.ts"

/** Where files lie that are only passing through, where it is there; else the system's own folder. */
export class PassingFolder extends Context.Reference<string | undefined>(
  "@tropism/server/database/PassingFolder",
  { defaultValue: () => undefined }
) {}

/** Why no project is made of a file, in a sentence that says what to do. */
export class DumpRefused extends Schema.TaggedError<DumpRefused>()("DumpRefused", {
  detail: Schema.String
}) {}

/** A dump that is whole and that this program can read. */
export interface JudgedDump {
  readonly file: FileSystem.File
  readonly head: DumpHead
  readonly digest: string
  readonly rows: number
}

/** The oldest schema whose rows fit this one's tables as they are: before it there were no dumps. */
const oldestSchema = 47

/** Keeps a body as a file without a name, for the scope. */
export const receiveDump = Effect.fn("receiveDump")(function* <E>(body: Stream.Stream<Uint8Array, E>) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const data = yield* PassingFolder
  const hasData = data !== undefined && (yield* Effect.orElseSucceed(files.exists(data), () => false))
  const folder = yield* Effect.orDie(
    files.makeTempDirectoryScoped({ prefix: "restore-", ...(hasData ? { directory: data } : {}) })
  )
  const file = yield* Effect.orDie(files.open(path.join(folder, "dump"), { flag: "w+", mode: 0o600 }))
  yield* Effect.ignore(files.remove(folder, { recursive: true }))
  yield* body
    .pipe(
      Stream.timeoutOrElse({
        duration: dumpLimits.senderSilenceMs,
        orElse: () => Stream.fail("silent" as const)
      }),
      Stream.mapError(() => brokeOff),
      Stream.runForEach((bytes) => Effect.mapError(file.writeAll(bytes), () => noRoom))
    )
    .pipe(Effect.catchDefect(() => Effect.fail(brokeOff)))
  return file
})

const brokeOff = new DumpRefused({
  detail: "The connection broke before the whole dump had come. Nothing was restored."
})
const noRoom = new DumpRefused({
  detail: "The server has no room for the dump on its disk. Nothing was restored."
})

/** Reads a file to its end and says whether it is a dump that nobody has touched since it was taken. */
export const judgeDump = Effect.fn("judgeDump")(function* (file: FileSystem.File) {
  const next = yield* readLines(file)
  const first = yield* next
  if (first === undefined) return yield* refuse("The file is empty.")
  const head = yield* judgeHead(first)
  const hash = createHash("sha256").update(first).update("\n")
  let rows = 0
  let read = first.length + 1
  let line = yield* next
  while (line !== undefined) {
    const after = yield* next
    if (after === undefined) break
    hash.update(line).update("\n")
    rows += 1
    read += line.length + 1
    line = after
  }
  const expected = rowsIn(head)
  const digest = hash.digest("hex")
  const last = line === undefined ? "" : decoder.decode(line)
  const failed = decodeFailed(last)
  if (Option.isSome(failed)) return yield* refuse(failed.value.error)
  if (Option.isNone(decodeEnd(last)) || rows < expected)
    return yield* refuse(
      `This dump is not whole: it has ${rows} of ${expected} rows, or was cut before its last line. Take it, or copy it, again.`
    )
  const { size } = yield* Effect.orDie(file.stat)
  const bytes = read + last.length + 1
  if (`${last}\n` !== endLineOf({ rows: expected, sha256: digest }) || BigInt(size) !== BigInt(bytes))
    return yield* refuse(
      "This dump was damaged since it was taken: its bytes do not have the digest of its last line. Take it, or copy it, again."
    )
  return { file, head, digest, rows } satisfies JudgedDump
})

const judgeHead = Effect.fnUntraced(function* (line: Uint8Array) {
  const text = decoder.decode(line)
  const stamp = decodeStamp(text)
  if (Option.isNone(stamp))
    return yield* refuse(
      'This file is no dump of a project: its first line does not say so. "tropism dump" makes one; what "tropism export" wrote is for "tropism import".'
    )
  const { format, schema } = stamp.value
  if (format > dumpFormat || schema > schemaVersion)
    return yield* refuse(
      `This dump was taken by a newer version of the program (its schema is ${schema}, this server knows ${schemaVersion}): restore it on a server of that version, or newer.`
    )
  if (format < dumpFormat || schema < oldestSchema)
    return yield* refuse(
      `This dump was taken by a version that is too old (its schema is ${schema}, this server reads from ${oldestSchema} on): restore it on a server of that version, start this one on its database, and dump again.`
    )
  const head = decodeHead(text)
  if (Option.isNone(head)) return yield* refuse("This dump was damaged: its first line cannot be read.")
  const unknown = head.value.tables.find(({ name }) => !dumpParts.some(({ table }) => table === name))
  if (unknown !== undefined) return yield* refuse(`This dump has rows of ${unknown.name}, which no dump has.`)
  return head.value
})

/** Lines of a file from its beginning, each without its end; undefined behind the last. */
export const readLines = Effect.fnUntraced(function* (file: FileSystem.File) {
  yield* Effect.orDie(file.seek(0n, "start"))
  let piece: Uint8Array = new Uint8Array(0)
  let from = 0
  /** What earlier pieces have of the line that goes on in this one. */
  let before: Array<Uint8Array> = []
  let beforeBytes = 0
  const take = (end: number): Uint8Array => {
    const rest = piece.subarray(from, end)
    const line = before.length === 0 ? rest : Buffer.concat([...before, rest])
    before = []
    beforeBytes = 0
    from = end + 1
    return line
  }
  const next: Effect.Effect<Uint8Array | undefined, DumpRefused> = Effect.gen(function* () {
    while (true) {
      const end = piece.indexOf(lineFeed, from)
      if (end !== -1) return take(end)
      if (from < piece.length) {
        before.push(piece.subarray(from))
        beforeBytes += piece.length - from
      }
      if (beforeBytes > dumpLimits.lineMaxBytes) return yield* refuse("A line of this dump is too long.")
      const more = yield* Effect.orDie(file.readAlloc(dumpLimits.readBytes))
      piece = Option.getOrElse(more, () => new Uint8Array(0))
      from = 0
      if (Option.isNone(more)) return beforeBytes > 0 ? take(0) : undefined
    }
  })
  return next
})

const refuse = (detail: string) => Effect.fail(new DumpRefused({ detail: `${detail} Nothing was restored.` }))

const lineFeed = 10
const decoder = new TextDecoder()

const Stamp = Schema.Struct({ tropism: Schema.Literal("dump"), format: Schema.Int, schema: Schema.Int })
const Failed = Schema.Struct({ tropism: Schema.Literal("failed"), error: Schema.String })
const decodeStamp = Schema.decodeUnknownOption(Schema.fromJsonString(Stamp))
const decodeHead = Schema.decodeUnknownOption(Schema.fromJsonString(DumpHead))
const decodeEnd = Schema.decodeUnknownOption(Schema.fromJsonString(DumpEnd))
const decodeFailed = Schema.decodeUnknownOption(Schema.fromJsonString(Failed))
