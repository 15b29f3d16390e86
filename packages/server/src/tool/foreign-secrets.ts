/**
 * Looks up the secrets that a definition names, and takes them out of what is said later.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * They come from the operator's environment when a connection is made, and only
 * names with the prefix are asked for: no definition reads the database's
 * password. What is revealed here goes to the server and nowhere else.
 */
import { type SecretOrText, secretPrefix } from "@tropism/domain/mcp-server"
import { Config, Effect, Option, Redacted } from "effect"
import { type ForeignFault, unmade } from "./foreign-fault.ts"

export interface Revealed {
  readonly values: Readonly<Record<string, string>>
  readonly secrets: ReadonlyArray<Redacted.Redacted>
}

/** The values of a definition's entries; fails with the name of a variable that is not set. */
export const revealSecrets = Effect.fnUntraced(function* (
  entries: Readonly<Record<string, SecretOrText>> | null | undefined
): Effect.fn.Return<Revealed, ForeignFault> {
  const values: Record<string, string> = {}
  const secrets: Array<Redacted.Redacted> = []
  for (const [name, value] of Object.entries(entries ?? {})) {
    if (typeof value === "string") {
      values[name] = value
      continue
    }
    const secret = yield* readSecret(value.secret)
    secrets.push(secret)
    values[name] = `${value.prefix ?? ""}${Redacted.value(secret)}`
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

/** Takes secrets out of a text. */
export const scrubber =
  (secrets: ReadonlyArray<Redacted.Redacted>) =>
  (text: string): string =>
    secrets.reduce((rest, secret) => {
      const value = Redacted.value(secret)
      return value.length < shortestSecretChars ? rest : rest.replaceAll(value, "<redacted>")
    }, text)
