/**
 * Looks up the secrets that a definition names, and takes them out of what is said later.
 *
 * They come from the operator's environment when a connection is made, and only
 * names with the prefix are asked for: no definition reads the database's
 * password. What is revealed here goes to the server and nowhere else.
 */
import { type SecretOrText, secretPrefix } from "@tropism/domain/mcp-server"
import { Config, Effect, Option, Redacted } from "effect"
import { type ExternalFault, unmade } from "./faults.ts"

export interface Revealed {
  readonly values: Readonly<Record<string, string>>
  readonly secrets: ReadonlyArray<Redacted.Redacted>
}

/** The values of a definition's entries; fails with the name of a variable that is not set. */
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
  // A file or a shell may hand it over with a line break at its end, which no header takes.
  const text = Option.match(found, { onNone: () => "", onSome: (value) => Redacted.value(value).trim() })
  return text === ""
    ? yield* unmade(
        `The server has no ${name} in its environment: the operator sets it and starts the server again`
      )
    : Redacted.make(text)
})

/** A value of fewer characters is a placeholder; taking it out would only garble texts. */
const shortestSecretChars = 8

/** Takes secrets out of a text, also where they were written as JSON, an address, base64 or hex writes them. */
export const scrubber = (secrets: ReadonlyArray<Redacted.Redacted>): ((text: string) => string) => {
  const values = secrets.map(Redacted.value).filter(({ length }) => length >= shortestSecretChars)
  if (values.length === 0) return (text) => text
  // The longest first: what holds another spelling goes as a whole.
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

/** A secret as it is, in JSON, in an address and in a form. */
const spellingsOf = (value: string): ReadonlyArray<string> => {
  const inJson = JSON.stringify(value).slice(1, -1)
  const inAddress = encodeURIComponent(value.toWellFormed())
  const inForm = new URLSearchParams({ v: value.toWellFormed() }).toString().slice(2)
  const inLowerCase = [inAddress, inForm].map((text) => text.replace(/%../g, (code) => code.toLowerCase()))
  return [value, inJson, inJson.replaceAll("/", "\\/"), inAddress, inForm, ...inLowerCase]
}

/**
 * What base64 and base64url make of a secret wherever it stands in a longer text.
 *
 * **Details** Three bytes become four characters, so there are three ways. A character that is made of a neighbour's
 * bits, too, is not part of it.
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
