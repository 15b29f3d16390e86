/**
 * What the official conformance suite expects of a server that it tries: its own tools, resources and prompts.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * They stand behind a door like ours, at an address of its own, without a token,
 * because the suite can send none; `main.ts` opens it only with `--mcp-fixtures`
 * and on 127.0.0.1. Nothing here reaches a project.
 */
import { Effect, PubSub, Stream } from "effect"
import { fixtureAskingPrompt, fixtureQuestions } from "./fixture-questions.ts"
import { fixtureTools, pixelPng } from "./fixture-tools.ts"
import type { ListenFilter, Offer, PartPrompt, PartResources, Telling } from "./part.ts"

type List = "tools" | "prompts"

/** Everything that the suite calls. */
export const fixtureOffer = Effect.map(PubSub.sliding<List>(16), (changes): Offer => ({
  tools: [...fixtureTools((list) => PubSub.publish(changes, list)), ...fixtureQuestions],
  prompts: [...prompts, fixtureAskingPrompt],
  resources,
  complete: ({ argument: { value } }) =>
    Effect.succeed(["paris", "park", "party"].filter((word) => word.startsWith(value))),
  capabilities: {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { subscribe: true, listChanged: true }
  },
  listen: (filter) => Effect.succeed({ honored: filter, tell: tellLists(changes, filter) }),
  // No resource here ever changes: whoever subscribes is told so much, and waits.
  extend: (server) => {
    for (const method of ["resources/subscribe", "resources/unsubscribe"] as const)
      server.setRequestHandler(method, () => ({}))
  }
}))

/** Tells of the lists that a listener asked for, for as long as it listens. */
const tellLists =
  (changes: PubSub.PubSub<List>, { promptsListChanged, toolsListChanged }: ListenFilter): Telling["tell"] =>
  (notify) =>
    Stream.fromPubSub(changes).pipe(
      Stream.filter((list) => (list === "tools" ? toolsListChanged : promptsListChanged) === true),
      Stream.runForEach((list) => notify(`notifications/${list}/list_changed`))
    )

const templatePattern = /^test:\/\/template\/(?<id>[^/]+)\/data$/

const contentOf = (uri: string) => {
  const { id } = templatePattern.exec(uri)?.groups ?? {}
  if (id !== undefined)
    return {
      mimeType: "application/json",
      text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` })
    }
  switch (uri) {
    case "test://static-text":
      return { mimeType: "text/plain", text: "This is the content of the static text resource." }
    case "test://static-binary":
      return { mimeType: "image/png", blob: pixelPng }
    case "test://watched-resource":
      return { mimeType: "text/plain", text: "Watched resource content" }
    default:
      return undefined
  }
}

const resources: PartResources = {
  list: () =>
    Effect.succeed({
      resources: ["static-text", "static-binary", "watched-resource"].map((name) => ({
        uri: `test://${name}`,
        name,
        description: "A resource for testing"
      }))
    }),
  templates: [{ uriTemplate: "test://template/{id}/data", name: "template", mimeType: "application/json" }],
  read: (uri) => {
    const content = contentOf(uri)
    return Effect.succeed(content && { contents: [{ uri, ...content }] })
  }
}

type Message = { readonly role: "user"; readonly content: { readonly type: "text"; readonly text: string } }
const said = (text: string): Message => ({ role: "user", content: { type: "text", text } })

const argument = (name: string, description: string) => ({ name, description, required: true })

const prompts: ReadonlyArray<PartPrompt> = [
  {
    listed: { name: "test_simple_prompt", description: "A prompt without arguments" },
    get: () => Effect.succeed({ messages: [said("This is a simple prompt for testing.")] })
  },
  {
    listed: {
      name: "test_prompt_with_arguments",
      description: "A prompt with two arguments",
      arguments: [argument("arg1", "First test argument"), argument("arg2", "Second test argument")]
    },
    get: ({ arg1, arg2 }) =>
      Effect.succeed({ messages: [said(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)] })
  },
  {
    listed: {
      name: "test_prompt_with_embedded_resource",
      description: "A prompt that holds a resource",
      arguments: [argument("resourceUri", "URI of the resource to embed")]
    },
    get: ({ resourceUri = "" }) =>
      Effect.succeed({
        messages: [
          {
            role: "user",
            content: {
              type: "resource",
              resource: {
                uri: resourceUri,
                mimeType: "text/plain",
                text: "Embedded resource content for testing."
              }
            }
          },
          said("Please process the embedded resource above.")
        ]
      })
  },
  {
    listed: { name: "test_prompt_with_image", description: "A prompt that holds an image" },
    get: () =>
      Effect.succeed({
        messages: [
          { role: "user", content: { type: "image", data: pixelPng, mimeType: "image/png" } },
          said("Please analyze the image above.")
        ]
      })
  }
]
