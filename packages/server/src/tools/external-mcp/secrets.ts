/**
 * Resolves the secrets that a definition names, and removes them from later texts.
 *
 * Secrets come from the operator's environment when a connection is opened. Only names with the prefix are read, so no
 * definition can read the database's password. A revealed secret is sent to the server only.
 */
import { type SecretOrText, secretPrefix } from "@tropism/domain/mcp-server"
import { Config, Effect, Option, Redacted } from "effect"
import { type ExternalFault, unmade } from "./faults.ts"

export interface Revealed {
  readonly values: Readonly<Record<string, string>>
  readonly secrets: ReadonlyArray<Redacted.Redacted>
}

/** Returns the values of a definition's entries; fails with the name of an unset variable. */
export const revealSecrets = Effect.fnUntraced(function* (
  entries: Readonly<Record<string, SecretOrText>> | null | undefined
): Effect.fn.Return<Revealed, ExternalFault> {
  const values: Record<string, string> = {}
  const secrets: Array<Redacted.Redacted> = []
  for (const [name, value] of Object.entries(entries ?? {})) {
    if (typeof value === "string") {
      values[name] = value
      continue
    }
    const secret = yield* readSecret(value.secret)
    const whole = `${value.prefix ?? ""}${Redacted.value(secret)}`
    secrets.push(secret, Redacted.make(whole))
    values[name] = whole
  }
  return { values, secrets }
})

const readSecret = Effect.fnUntraced(function* (name: string) {
  const found = name.startsWith(secretPrefix)
    ? yield* Effect.orElseSucceed(Config.option(Config.Redacted(name)), () => Option.none())
    : Option.none()
  // A file or a shell may append a line break, which no header accepts.
  const text = Option.match(found, { onNone: () => "", onSome: (value) => Redacted.value(value).trim() })
  return text === ""
    ? yield* unmade(
        `The server has no ${name} in its environment: the operator sets it and starts the server again`
      )
    : Redacted.make(text)
})

/** A shorter value is a placeholder; removing it would only garble texts. */
const shortestSecretChars = 8

/** Removes secrets from a text, including their JSON, URL, base64 and hex encodings. */
export const scrubber = (secrets: ReadonlyArray<Redacted.Redacted>): ((text: string) => string) => {
  const values = secrets.map(Redacted.value).filter(({ length }) => length >= shortestSecretChars)
  if (values.length === 0) return (text) => text
  // Longest first, so that an encoding that contains another is removed as a whole.
  const spellings = [...new Set(values.flatMap(spellingsOf))].toSorted((a, b) => b.length - a.length)
  const plain = new RegExp(spellings.map(quoted).join("|"), "g")
  const hex = new RegExp(values.map((value) => Buffer.from(value).toString("hex")).join("|"), "gi")
  const base64 = new RegExp(
    [...new Set(values.flatMap(base64CoresOf))]
      .map((core) => `[\\w+/-]?${quoted(core)}[\\w+/-]?=*`)
      .join("|"),
    "g"
  )
  return (text) => [plain, hex, base64].reduce((rest, found) => rest.replace(found, "<redacted>"), text)
}

/** The encodings of a secret: plain, JSON, URL and form. */
const spellingsOf = (value: string): ReadonlyArray<string> => {
  const inJson = JSON.stringify(value).slice(1, -1)
  const inAddress = encodeURIComponent(value.toWellFormed())
  const inForm = new URLSearchParams({ v: value.toWellFormed() }).toString().slice(2)
  const inLowerCase = [inAddress, inForm].map((text) => text.replace(/%../g, (code) => code.toLowerCase()))
  return [value, inJson, inJson.replaceAll("/", "\\/"), inAddress, inForm, ...inLowerCase]
}

/**
 * Returns what base64 and base64url make of a secret at any position in a longer text.
 *
 * **Details** Three bytes become four characters, so there are three alignments. Characters that share bits with a neighbour
 * are left out.
 */
const base64CoresOf = (value: string): ReadonlyArray<string> => {
  const bytes = Buffer.from(value)
  return [0, 1, 2].flatMap((before) => {
    const shifted = Buffer.concat([Buffer.alloc(before), bytes])
    const core = shifted
      .toString("base64")
      .slice(Math.ceil((before * 8) / 6), Math.floor((shifted.length * 8) / 6))
    return [core, core.replaceAll("+", "-").replaceAll("/", "_")]
  })
}

const quoted = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&")
