/**
 * What kind of file is to be imported: by its name, else by how it begins.
 *
 * A wrong guess costs nothing, since the server refuses what it cannot read; the
 * flag `--format` decides where the guess would be wrong.
 */
import type { ImportFormat } from "@tropism/api/transfer-api"
import { Effect, FileSystem, Option, Schema, Stream } from "effect"
import { isJsonObject } from "@tropism/domain/json"
import { limits } from "./limits.ts"

/** Finds the format of a file that can be read. */
export const importFormat = (file: string) =>
  Effect.gen(function* () {
    if (/\.(?:jsonl|ndjson)$/i.test(file)) return "jsonl" as const
    if (/\.csv$/i.test(file)) return "csv" as const
    const files = yield* FileSystem.FileSystem
    const head = yield* files.stream(file, { bytesToRead: limits.sniffedBytes }).pipe(
      Stream.decodeText(),
      Stream.mkString,
      Effect.orElseSucceed(() => "")
    )
    return formatOf(head)
  })

/** The format of a file that begins like this. */
export const formatOf = (head: string): ImportFormat => {
  const text = head.trimStart()
  if (/"lockfileVersion"\s*:/.test(text)) return "package-lock"
  const line = Option.getOrUndefined(decodeLine(text.split("\n", 1)[0] ?? ""))
  if (isJsonObject(line) && ("type" in line || "relationship" in line)) return "jsonl"
  return text.startsWith("{") || text === "" ? "package-lock" : "csv"
}

const decodeLine = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Unknown))
