/**
 * Puts the bytes of files into the messages that a model is about to be shown.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * The log names files by their digests; bytes are in memory only while a request
 * lasts. The newest files fit first: an older one beyond the bound is named and
 * not shown. Text is shown as text, because not every model takes files.
 */
import { type Digest, digestOfRef, isTextual } from "@tropism/domain/attachment"
import { foldGrown } from "@tropism/domain/grown"
import type { ProjectId } from "@tropism/domain/ids"
import type { Message, UserPart } from "@tropism/domain/message"
import { Effect } from "effect"
import { Attachments, type KeptFile } from "../agent/attachments.ts"
import { Database } from "../database/database.ts"
import { agentLimits } from "../limits.ts"

type FilePart = Extract<UserPart, { readonly type: "file" }>

export const makeShownFiles = Effect.gen(function* () {
  const database = yield* Database
  const attachments = yield* Attachments

  /** The messages with their files; those without any are answered as they are. */
  const withFiles = Effect.fnUntraced(function* (projectId: ProjectId, messages: ReadonlyArray<Message>) {
    const newestFirst = digestsIn(messages).toReversed()
    if (newestFirst.length === 0) return messages
    const sizes = yield* database.inProject(projectId, attachments.sizes([...new Set(newestFirst)]))
    const shown = newestThatFit(newestFirst, sizes)
    const files = yield* database.inProject(projectId, attachments.load([...shown]))
    return messages.map((message): Message =>
      message.role === "user" && typeof message.content !== "string"
        ? {
            role: "user",
            content: message.content.map((part) => (part.type === "file" ? shownPart(part, files) : part))
          }
        : message
    )
  })

  return { withFiles }
})

/** The digests of all files, in the order in which they were shown. */
const digestsIn = foldGrown<Message, Array<Digest>>(
  () => [],
  (digests, { content, role }) => {
    if (role !== "user" || typeof content === "string") return digests
    for (const part of content) {
      const digest = part.type === "file" ? digestOfRef(part.data) : undefined
      if (digest !== undefined) digests.push(digest)
    }
    return digests
  }
)

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

const shownPart = (part: FilePart, files: ReadonlyMap<Digest, KeptFile>): UserPart => {
  const digest = digestOfRef(part.data)
  const file = digest && files.get(digest)
  const name = part.fileName ?? part.mediaType
  if (!file) return { type: "text", text: `[The file ${name} is not shown here: it is too far back.]` }
  if (isTextual(file.mimeType))
    return { type: "text", text: `[File ${name}]\n${new TextDecoder().decode(file.bytes)}` }
  return { ...part, data: Buffer.from(file.bytes).toString("base64") }
}
