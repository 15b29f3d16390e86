/**
 * Encrypts stored secrets with the key that all servers of a database share.
 *
 * The operator supplies the keys; the database stores the current one's name. **Invariant**: a server without that key seals nothing, so no
 * server writes what another cannot read.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto"
import type { ProjectId } from "@tropism/domain/ids"
import { Context, Effect, Layer, Schema, Option, Redacted, FileSystem, Path } from "effect"
import { SqlClient } from "effect/sql"
import { makeDataFolder } from "./data-folder.ts"
import { onlyRow, orDie, ProjectTransaction } from "./database.ts"

/** The keys of this server: the first seals, all open. Empty where the operator supplied none. */
export class SealingKeys extends Context.Reference<ReadonlyArray<SealingKey>>(
  "@tropism/server/database/SealingKeys",
  { defaultValue: () => [] }
) {}

/** Sealing is impossible here: this server has no key, or not the one of the database's secrets. */
export class SealingRefused extends Schema.TaggedError<SealingRefused>()("SealingRefused", {
  reason: Schema.Literals(["noKey", "otherKey"])
}) {}

export class Sealing extends Context.Service<
  Sealing,
  {
    /** The keys with which this server can open. */
    readonly keyIds: ReadonlyArray<string>
    /** Seals a secret for a place with the database's key, which cannot change until the transaction ends. */
    readonly seal: (
      place: string,
      secret: string
    ) => Effect.Effect<string, SealingRefused, ProjectTransaction>
    /** The secret in a sealed text; undefined where this server cannot open it at this place. */
    readonly open: (place: string, sealedSecret: string) => string | undefined
    /** Makes this server's first key the database's; returns the key that it then is, null before anything was sealed. */
    readonly adopt: Effect.Effect<string | null>
    /** Projects with secrets that are not sealed with the first key. */
    readonly unsealed: Effect.Effect<ReadonlyArray<ProjectId>>
  }
>()("@tropism/server/database/Sealing") {
  static readonly layer = Layer.effect(
    Sealing,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const keys = yield* SealingKeys
      const keyIds = keys.map(({ id }) => id)
      const [first] = keys

      const seal = Effect.fn("Sealing.seal")(function* (place: string, secret: string) {
        yield* ProjectTransaction
        if (first === undefined) return yield* new SealingRefused({ reason: "noKey" })
        const { keyId } = yield* Effect.flatMap(
          sql<{ readonly keyId: string }>`select kb.hold_sealing_key(${first.id}) as key_id`,
          onlyRow
        ).pipe(orDie)
        const key = keys.find(({ id }) => id === keyId)
        return key === undefined
          ? yield* new SealingRefused({ reason: "otherKey" })
          : sealed(key, place, secret)
      })

      const adopt = Effect.gen(function* () {
        if (first === undefined) return null
        const { keyId } = yield* Effect.flatMap(
          sql<{
            readonly keyId: string | null
          }>`select kb.adopt_sealing_key(${first.id}, ${keyIds}::text[]) as key_id`,
          onlyRow
        )
        return keyId
      }).pipe(orDie)

      const unsealed = Effect.gen(function* () {
        if (first === undefined) return []
        const rows = yield* sql<{
          readonly projectId: ProjectId
        }>`select project_id from kb.projects_with_unsealed_secrets(${first.id}) as project_id`
        return rows.map(({ projectId }) => projectId)
      }).pipe(orDie)

      return Sealing.of({
        keyIds,
        seal,
        open: (place, sealedSecret) => opened(keys, place, sealedSecret),
        adopt,
        unsealed
      })
    })
  )
}

// Encrypts a text for one place in the database, so that a copy of the database alone does not reveal it.
//
// AES-256-GCM, with a nonce for each text. The place (the row it is for) is authenticated with it: a text sealed for one row opens in no
// other. A sealed text names its key, so it is known in advance whether it can be opened.

/** A key and its name in texts and programs. */
export interface SealingKey {
  /** Derived from the key without revealing it. */
  readonly id: string
  readonly bytes: Redacted.Redacted<Uint8Array>
}

const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16

/** Parses a key: 32 bytes in hexadecimal or base64; undefined if it is invalid. */
export const readKey = (text: string): SealingKey | undefined => {
  const isHex = /^[0-9a-f]{64}$/i.test(text)
  if (!isHex && !/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return undefined
  const bytes = Buffer.from(text, isHex ? "hex" : "base64")
  if (bytes.length !== keyBytes) return undefined
  const id = createHash("sha256").update("tropism sealing key\n").update(bytes).digest("hex").slice(0, 12)
  return { id, bytes: Redacted.make(new Uint8Array(bytes)) }
}

/** A new key, in text form. */
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

/** The content of a sealed text; undefined where no key opens it at this place. */
export const opened = (keys: ReadonlyArray<SealingKey>, place: string, text: string): string | undefined => {
  const { body = "", id } = pattern.exec(text)?.groups ?? {}
  const key = keys.find((one) => one.id === id)
  const bytes = Buffer.from(body, "base64url")
  if (key === undefined || bytes.length < nonceBytes + tagBytes) return undefined
  // GCM throws if the text, the place or the key is wrong.
  const open = Option.liftThrowable(() => {
    const decipher = createDecipheriv("aes-256-gcm", Redacted.value(key.bytes), bytes.subarray(0, nonceBytes))
      .setAAD(Buffer.from(place))
      .setAuthTag(bytes.subarray(-tagBytes))
    return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()])
  })
  return Option.getOrUndefined(Option.map(open(), (found) => found.toString("utf8")))
}

const pattern = /^v1\.(?<id>[0-9a-f]{12})\.(?<body>[A-Za-z0-9_-]+)$/

// Finds the sealing keys: the operator's, otherwise a file in the data folder.
//
// Several keys are separated by commas: the first seals, all open, so a new key is added in front. Only a server that keeps its own token
// in the data folder also creates a key there: elsewhere the next start, or another server of the same database, would not find it.

/** The file's name in the data folder. */
export const keyFile = "encryption-key"

/** The keys; fails with a sentence about what is wrong with them. */
export const findSealingKeys = Effect.fn("findSealingKeys")(function* (options: {
  readonly given: Redacted.Redacted<string> | undefined
  readonly dataFolder: string
  readonly mayMake: boolean
}): Effect.fn.Return<
  { readonly keys: ReadonlyArray<SealingKey> } | { readonly fault: string },
  never,
  FileSystem.FileSystem | Path.Path
> {
  if (options.given) return keysOf(Redacted.value(options.given), "TROPISM_ENCRYPTION_KEY")
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.resolve(options.dataFolder, keyFile)
  const read = Effect.orElseSucceed(fileSystem.readFileString(file), () => "")
  const kept = yield* read
  if (kept !== "") return keysOf(kept, file)
  if (!options.mayMake) return { keys: [] }
  const made = yield* Effect.andThen(Effect.ignore(makeKeyFile(options.dataFolder, file)), read)
  return made === ""
    ? {
        fault: `The key for secrets could not be kept in ${file}: make the folder writable, or set TROPISM_ENCRYPTION_KEY.`
      }
    : keysOf(made, file)
})

/**
 * Creates the file atomically: it is written beside its place and then linked to it.
 *
 * Of two concurrent programs the first one's link stays, and both read that. An empty file is left from a machine that stopped while
 * writing it: nothing can have been sealed with it.
 */
const makeKeyFile = Effect.fnUntraced(function* (dataFolder: string, file: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* makeDataFolder(dataFolder)
  const beside = yield* fileSystem.makeTempDirectoryScoped({ directory: dataFolder, prefix: `${keyFile}-` })
  const written = path.join(beside, keyFile)
  const handle = yield* fileSystem.open(written, { flag: "wx", mode: 0o600 })
  yield* handle.writeAll(new TextEncoder().encode(`${newKeyText()}\n`))
  yield* handle.sync
  const isEmpty = Effect.map(fileSystem.stat(file), ({ size }) => Number(size) === 0)
  if (yield* Effect.orElseSucceed(isEmpty, () => false)) yield* fileSystem.remove(file)
  yield* fileSystem.link(written, file)
}, Effect.scoped)

const keysOf = (text: string, where: string) => {
  const parts = text.split(",").map((one) => one.trim())
  // An unset variable leaves an empty part where two keys were intended.
  if (parts.length > 1 && parts.includes(""))
    return { fault: `${where} has an empty part: put a comma only between two keys.` }
  const known = parts.map(readKey).filter((key) => key !== undefined)
  return known.length < parts.length
    ? {
        fault: `${where} must be a key of 32 bytes in base64, or several with commas between them: make one with "openssl rand -base64 32".`
      }
    : { keys: known }
}
