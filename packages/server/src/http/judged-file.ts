/**
 * Whether bytes are the file that somebody says they are, and what they are kept as.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { createHash } from "node:crypto"
import { type Digest, findFileFault, isTextual, type MimeType } from "@tropism/domain/attachment"
import { textFault } from "@tropism/domain/json"
import { Effect } from "effect"
import { invalid } from "./refusals.ts"
import { readText } from "./request-judgement.ts"

/** A file as it came, and whether somebody says that nobody vouches for it. */
interface SentFile {
  readonly bytes: Uint8Array
  readonly mimeType: MimeType
  readonly untrusted: boolean
}

/** What a file is kept as; refused at a place of the request when it is not what it is said to be. */
export const judged = Effect.fnUntraced(function* ({ bytes, mimeType, untrusted }: SentFile, place: string) {
  const fault = findFileFault(bytes, mimeType)
  if (fault !== undefined) return yield* invalid(place, fault)
  if (isTextual(mimeType)) {
    const text = yield* Effect.mapError(readText(bytes), () => invalid(place, "The file is no UTF-8 text"))
    const unkept = textFault(text)
    if (unkept !== undefined) return yield* invalid(place, unkept)
  }
  const digest = createHash("sha256").update(bytes).digest("hex") as Digest
  return { digest, mimeType, sizeBytes: bytes.length, untrusted }
})
