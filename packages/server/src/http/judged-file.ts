/**
 * Whether bytes are the file that somebody says they are, and what they are kept as.
 *
 * Flow: **http** → dispatch → run → tool → task
 */
import { createHash } from "node:crypto"
import { type Digest, findFileFault, isTextual, mimeTypeOf, type MimeType } from "@tropism/domain/attachment"
import { textFault } from "@tropism/domain/json"
import { Effect, Result } from "effect"
import { agentLimits } from "../limits.ts"
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

/** As senders write it: in lines, in either alphabet, with or without what fills it up. */
const base64Text = /^[A-Za-z0-9+/_\s-]*={0,2}\s*$/

const dataUrl = /^data:([^;,]*)(?:;[^;,]*)*?;base64,([\s\S]*)$/i

/** The file in a `data:` URL; a failure says what is wrong with it. */
export const readDataUrl = (url: string): Result.Result<Pick<SentFile, "bytes" | "mimeType">, string> => {
  const [, said = "", base64 = ""] = dataUrl.exec(url) ?? []
  const mimeType = mimeTypeOf(said)
  if (mimeType === undefined)
    return Result.fail(
      "Send a data: URL in base64 of a picture (PNG, JPEG, GIF, WebP), a PDF, JSON or a text: data:image/png;base64,…"
    )
  if (!base64Text.test(base64))
    return Result.fail(
      "What follows base64, is not base64: it has A to Z, a to z, 0 to 9, + and / (or - and _), with = at its end alone"
    )
  const bytes = new Uint8Array(Buffer.from(base64, "base64"))
  return bytes.length > agentLimits.fileMaxBytes
    ? Result.fail(`A file may have ${agentLimits.fileMaxBytes} bytes`)
    : Result.succeed({ bytes, mimeType })
}
