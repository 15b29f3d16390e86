/**
 * The words in which stories let the official client watch resources, in either revision.
 */
import type { Client } from "@modelcontextprotocol/client"
import { Effect, type Scope } from "effect"
import { connect, type Revision } from "./mcp-clients.ts"
import { addressOf } from "./mcp-extension-words.ts"
import { eventually, type Json, type Story } from "./platform.ts"

export interface Watcher {
  readonly client: Client
  /** The addresses that the server took. */
  readonly taken: ReadonlyArray<string>
  /** What was said of the others, without the address. */
  readonly refused: ReadonlyArray<string>
  /** The addresses of which it was told so far. */
  readonly told: ReadonlyArray<string>
  /** Waits until it was told of an address, and answers everything that it was told. */
  readonly untilTold: (uri: string) => Effect.Effect<ReadonlyArray<string>>
  /** In 2026-07-28: how the server ended the stream. */
  readonly closed: Effect.Effect<string>
}

/** Watches some addresses, until the scope ends. */
export const watching = (
  story: Story,
  revision: Revision,
  uris: ReadonlyArray<string>
): Effect.Effect<Watcher, never, Scope.Scope> =>
  Effect.gen(function* () {
    const client = yield* connect(story, addressOf(story), revision)
    const told: Array<string> = []
    client.setNotificationHandler(
      "notifications/resources/updated",
      ({ params }) => void told.push(params.uri)
    )
    const listening = revision === "2026-07-28" ? yield* listen(client, uris) : yield* subscribe(client, uris)
    return {
      client,
      told,
      ...listening,
      untilTold: (uri) =>
        eventually(
          Effect.sync(() => [...told]),
          (all) => all.includes(uri)
        )
    }
  })

const listen = (client: Client, uris: ReadonlyArray<string>) =>
  Effect.promise(() =>
    client.listen({ resourceSubscriptions: [...uris] }).then((subscription) => ({
      taken: subscription.honoredFilter.resourceSubscriptions ?? [],
      refused: [],
      closed: Effect.promise(() => subscription.closed)
    }))
  )

const subscribe = (client: Client, uris: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const [taken, refused]: [Array<string>, Array<string>] = [[], []]
    for (const uri of uris)
      yield* Effect.promise(() =>
        client.subscribeResource({ uri }).then(
          () => void taken.push(uri),
          (error: Json) => void refused.push(`${error.code} ${String(error.message).replaceAll(uri, "…")}`)
        )
      )
    return { taken, refused, closed: Effect.never }
  })

/** The address of an object, and that of a run's log. */
export const objectAt = ({ id }: Json): string => `tropism://objects/${id}`
export const logAt = ({ id }: Json): string => `tropism://runs/${id}/log`
