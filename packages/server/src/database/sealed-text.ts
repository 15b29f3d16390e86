/**
 * Encrypts a text for one place in the database, so that a copy of the database alone tells nobody what it says.
 *
 * AES-256-GCM, with a nonce of its own for each text. The place (which row it is
 * for) is authenticated with it: what is sealed for one row opens in no other. A
 * sealed text names its key, so it is known whether it can be opened before
 * anybody tries.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto"
import { Option, Redacted } from "effect"

/** A key and the name by which texts and programs know it. */
export interface SealingKey {
  /** Follows from the key, and tells nothing of it. */
  readonly id: string
  readonly bytes: Redacted.Redacted<Uint8Array>
}

const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16

/** Reads a key: 32 bytes, hexadecimal or in base64; undefined where the text is none. */
export const readKey = (text: string): SealingKey | undefined => {
  const isHex = /^[0-9a-f]{64}$/i.test(text)
  if (!isHex && !/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return undefined
  const bytes = Buffer.from(text, isHex ? "hex" : "base64")
  if (bytes.length !== keyBytes) return undefined
  const id = createHash("sha256").update("tropism sealing key\n").update(bytes).digest("hex").slice(0, 12)
  return { id, bytes: Redacted.make(new Uint8Array(bytes)) }
}

/** A new key, as it is written down. */
export const newKeyText = (): string => randomBytes(keyBytes).toString("base64")

/** Seals a text for a place. */
export const sealed = ({ bytes, id }: SealingKey, place: string, text: string): string => {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv("aes-256-gcm", Redacted.value(bytes), nonce).setAAD(Buffer.from(place))
  const body = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final(), cipher.getAuthTag()])
  return `v1.${id}.${body.toString("base64url")}`
}

/** The key that a text names; undefined where it is not sealed. */
export const keyIdOf = (text: string): string | undefined => pattern.exec(text)?.groups?.["id"]

/** What a sealed text says; undefined where no key opens it at this place. */
export const opened = (keys: ReadonlyArray<SealingKey>, place: string, text: string): string | undefined => {
  const { body = "", id } = pattern.exec(text)?.groups ?? {}
  const key = keys.find((one) => one.id === id)
  const bytes = Buffer.from(body, "base64url")
  if (key === undefined || bytes.length < nonceBytes + tagBytes) return undefined
  // GCM says by an exception that the text, the place or the key is another.
  const open = Option.liftThrowable(() => {
    const decipher = createDecipheriv("aes-256-gcm", Redacted.value(key.bytes), bytes.subarray(0, nonceBytes))
      .setAAD(Buffer.from(place))
      .setAuthTag(bytes.subarray(-tagBytes))
    return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()])
  })
  return Option.getOrUndefined(Option.map(open(), (found) => found.toString("utf8")))
}

const pattern = /^v1\.(?<id>[0-9a-f]{12})\.(?<body>[A-Za-z0-9_-]+)$/
