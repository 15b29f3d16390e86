/**
 * Loads the bytes of files into the messages of a model request.
 *
 * The log names files by their digests; bytes are in memory only during a request. The newest files take precedence: older ones beyond the
 * size limit are named but not shown. Text files are shown as text, because not every model accepts files.
 */
import { type Digest, digestOfRef, isTextual } from "@tropism/domain/attachment"
import { foldGrown } from "@tropism/domain/grown"
import type { ProjectId } from "@tropism/domain/ids"
import {
  type FilePart,
  type Message,
  picturesIn,
  type ToolResultPart,
  type UserPart
} from "@tropism/domain/message"
import { Effect } from "effect"
import { Attachments, type KeptFile } from "../contexts/attachments.ts"
import { Database } from "../database/database.ts"
import { agentLimits } from "../limits.ts"

export const makeShownFiles = Effect.gen(function* () {
  const database = yield* Database
  const attachments = yield* Attachments

  /** Returns the messages with their files; messages without files are returned unchanged. */
  const withFiles = Effect.fnUntraced(function* (projectId: ProjectId, messages: ReadonlyArray<Message>) {
    const newestFirst = digestsIn(messages).toReversed()
    if (newestFirst.length === 0) return messages
    const sizes = yield* database.inProject(projectId, attachments.sizes([...new Set(newestFirst)]))
    const shown = newestThatFit(newestFirst, sizes)
    const files = yield* database.inProject(projectId, attachments.load([...shown]))
    return messages.map((message): Message => {
      if (message.role === "tool") return { role: "tool", content: message.content.map(shownResult(files)) }
      return message.role === "user" && typeof message.content !== "string"
        ? {
            role: "user",
            content: message.content.map((part) => (part.type === "file" ? shownPart(part, files) : part))
          }
        : message
    })
  })

  return { withFiles }
})

/** Returns the digests of all files, in the order in which they were shown. */
const digestsIn = foldGrown<Message, Array<Digest>>(
  () => [],
  (digests, message) => {
    for (const { data } of filesIn(message)) {
      const digest = digestOfRef(data)
      if (digest !== undefined) digests.push(digest)
    }
    return digests
  }
)

const filesIn = (message: Message): ReadonlyArray<FilePart> => {
  if (message.role === "tool") return message.content.flatMap(picturesIn)
  return message.role === "user" && typeof message.content !== "string"
    ? message.content.filter((part) => part.type === "file")
    : []
}

const newestThatFit = (
  newestFirst: ReadonlyArray<Digest>,
  sizes: ReadonlyMap<Digest, number>
): ReadonlySet<Digest> => {
  let left: number = agentLimits.promptFilesMaxBytes
  const shown = new Set<Digest>()
  for (const digest of newestFirst) {
    const size = sizes.get(digest) ?? 0
    if (shown.has(digest) || size > left) continue
    shown.add(digest)
    left -= size
  }
  return shown
}

/** Returns a tool result with the bytes of its images, or with a note for images beyond the limit. */
const shownResult =
  (files: ReadonlyMap<Digest, KeptFile>) =>
  (part: ToolResultPart): ToolResultPart => {
    const all = picturesIn(part)
    if (all.length === 0) return part
    const pictures = all.flatMap((picture) => {
      const shown = shownPart(picture, files)
      return shown.type === "file" ? [shown] : []
    })
    const { options: _options, result, ...rest } = part
    const words = `${typeof result === "string" ? result : JSON.stringify(result)}\n[${all.length - pictures.length} of ${all.length} pictures are not shown here: they are too far back.]`
    return {
      ...rest,
      result: pictures.length === all.length ? result : words,
      ...(pictures.length === 0 ? {} : { options: { tropism: { pictures } } })
    }
  }

const shownPart = (part: FilePart, files: ReadonlyMap<Digest, KeptFile>): UserPart => {
  const digest = digestOfRef(part.data)
  const file = digest && files.get(digest)
  const name = part.fileName ?? part.mediaType
  if (!file) return { type: "text", text: `[The file ${name} is not shown here: it is too far back.]` }
  if (isTextual(file.mimeType))
    return { type: "text", text: `[File ${name}]\n${new TextDecoder().decode(file.bytes)}` }
  return { ...part, data: Buffer.from(file.bytes).toString("base64") }
}
