/**
 * The files that a request for a completion brings, kept before anything is said.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 *
 * A client sends its pictures again with each request; they are kept once, under
 * the digest of their bytes.
 */
import { completionBounds } from "@tropism/api/openai-completions"
import { type Digest, FileName } from "@tropism/domain/attachment"
import type { ProjectId } from "@tropism/domain/ids"
import { Effect, Schema } from "effect"
import { Attachments } from "../agent/attachments.ts"
import { fetchFile } from "../agent/remote-files.ts"
import type { SaidFile } from "../chat/completions.ts"
import { looking } from "./access.ts"
import { judged, readDataUrl } from "./judged-file.ts"
import { readableFile } from "./owned.ts"
import { openAiFault } from "./openai-faults.ts"
import { sourceKey, type WantedFile } from "./openai-turn.ts"

/** Keeps the files, and says by their source what each is. */
export const keepFiles = Effect.fn("http.openai.keepFiles")(function* (
  projectId: ProjectId,
  wanted: ReadonlyArray<WantedFile>
) {
  const kept = new Map<string, SaidFile>()
  const excess = wanted[completionBounds.files]
  if (excess)
    return yield* openAiFault(`A request may bring ${completionBounds.files} files`, { param: excess.param })
  for (const file of wanted) kept.set(sourceKey(file), yield* keepFile(projectId, file))
  return kept
})

const keepFile = Effect.fnUntraced(function* (projectId: ProjectId, wanted: WantedFile) {
  const attachments = yield* Attachments
  const { param, source } = wanted
  const fileName = yield* nameOf(wanted)
  if (source.type === "kept") {
    const found = yield* looking(projectId, "editor", () =>
      readableFile(source.digest as Digest, attachments.find(source.digest as Digest))
    )
    if (!found)
      return yield* openAiFault(
        `There is no file ${source.digest}: send it to /attachments, or its bytes in file_data`,
        {
          param
        }
      )
    const file: SaidFile = { ...found, fileName, source: { type: "upload" } }
    return file
  }
  const bytesAndType =
    source.type === "bytes"
      ? yield* Effect.mapError(Effect.fromResult(readDataUrl(source.dataUrl)), (fault) =>
          openAiFault(fault, { param })
        )
      : yield* Effect.mapError(fetchFile(source.url), ({ detail }) => openAiFault(detail, { param }))
  const file = yield* Effect.mapError(judged({ ...bytesAndType, untrusted: false }, param), ({ detail }) =>
    openAiFault(detail ?? "This is no file that an agent can be shown", { param })
  )
  // What somebody said of the same bytes stands: sending a history again vouches for nothing.
  const untrusted = yield* looking(projectId, "editor", ({ userId }) =>
    attachments.keepAsKnown({ ...file, bytes: bytesAndType.bytes }, userId)
  )
  const said: SaidFile = {
    ...file,
    fileName,
    untrusted,
    source: source.type === "bytes" ? { type: "upload" } : { type: "url", url: source.url }
  }
  return said
})

const isFileName = Schema.is(FileName)

const nameOf = ({ fileName, param }: WantedFile) =>
  fileName === null || isFileName(fileName)
    ? Effect.succeed(fileName)
    : Effect.fail(
        openAiFault("A file name has 1 to 200 characters, no slash and no control character", {
          param: param.replace(/file_(?:data|id)$/, "filename")
        })
      )
