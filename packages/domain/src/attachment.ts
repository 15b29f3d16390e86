/**
 * Files that people give to an agent: which kinds there are, and whether bytes are what they claim to be.
 *
 * A file is kept once, under the digest of its bytes; an event names the digest
 * and never holds the bytes (S004-R25). Nothing here reads or executes a file
 * beyond its first bytes.
 */
import { Schema } from "effect"
import type { FilePart } from "./message.ts"

/** The SHA-256 of a file's bytes, hexadecimal. */
export const Digest = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{64}$/, { message: "Expected a digest: 64 hexadecimal digits" })
).pipe(Schema.brand("Digest"))
export type Digest = typeof Digest.Type

export const MimeType = Schema.Literals([
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
  "application/pdf",
  "application/json",
  "text/plain",
  "text/markdown",
  "text/csv"
])
export type MimeType = typeof MimeType.Type

/** What a browser or a server may call a file, without its parameters; undefined for what no agent is shown. */
export const mimeTypeOf = (contentType: string): MimeType | undefined => {
  const [essence = ""] = contentType.split(";")
  const wanted = essence.trim().toLowerCase()
  return MimeType.literals.find((known) => known === wanted)
}

export const isTextual = (mimeType: MimeType): boolean =>
  mimeType.startsWith("text/") || mimeType === "application/json"

/** A name to show: no path, no control characters. */
export const FileName = Schema.String.check(
  Schema.isPattern(/^[^\p{Cc}/\\]{1,200}$/u, {
    message: "A file name has 1 to 200 characters, no slash and no control character"
  })
)

/** A file as it is kept. */
export const Attachment = Schema.Struct({
  digest: Digest,
  mimeType: MimeType,
  sizeBytes: Schema.Int,
  /** Nobody vouches for what it says; whoever sent it last has said so. */
  untrusted: Schema.Boolean
}).annotate({ identifier: "Attachment" })
export type Attachment = typeof Attachment.Type

/** A picture that a tool answered, as an event names it. */
export const Picture = Schema.Struct({ digest: Digest, mimeType: MimeType, sizeBytes: Schema.Int })
export type Picture = typeof Picture.Type

const ascii = (text: string): ReadonlyArray<number> => [...text].map((letter) => letter.charCodeAt(0))

/** How the files of a type begin: bytes, and from which place. */
const signatures: Readonly<
  Partial<Record<MimeType, ReadonlyArray<readonly [number, ReadonlyArray<number>]>>>
> = {
  "image/png": [[0, [0x89, ...ascii("PNG\r\n\u001a\n")]]],
  "image/jpeg": [[0, [0xff, 0xd8, 0xff]]],
  "image/gif": [[0, ascii("GIF8")]],
  "image/webp": [
    [0, ascii("RIFF")],
    [8, ascii("WEBP")]
  ],
  "application/pdf": [[0, ascii("%PDF-")]]
}

/** Why bytes are no file of a type, in a sentence; undefined when they are. */
export const findFileFault = (bytes: Uint8Array, mimeType: MimeType): string | undefined => {
  if (bytes.length === 0) return "The file is empty"
  const signature = signatures[mimeType]
  if (signature === undefined) return undefined
  const fits = signature.every(([at, wanted]) => wanted.every((byte, index) => bytes[at + index] === byte))
  return fits ? undefined : `The file does not begin as ${mimeType} does`
}

const prefix = "attachment:"

/** How a message names a kept file, where a model is to be shown its bytes. */
export const attachmentRef = (digest: Digest): string => `${prefix}${digest}`

const isDigest = Schema.is(Digest)

/** The digest that a message names, if it names one. */
export const digestOfRef = (ref: string): Digest | undefined => {
  const digest = ref.startsWith(prefix) ? ref.slice(prefix.length) : ""
  return isDigest(digest) ? digest : undefined
}

/** A file as it stands in a message. */
export const filePartOf = ({
  digest,
  fileName,
  mimeType
}: {
  readonly digest: Digest
  readonly fileName: string | null
  readonly mimeType: MimeType
}): FilePart => ({
  type: "file",
  mediaType: mimeType,
  ...(fileName === null ? {} : { fileName }),
  data: attachmentRef(digest)
})
