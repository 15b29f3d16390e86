/**
 * The server that the MCP conformance suite tests: the real MCP endpoint with the suite's own tools, resources and prompts.
 *
 * The suite can send no token, so these routes check none; they reach no project.
 * A test adds them to a server on 127.0.0.1 with `extraRoutes`.
 */
import { Effect, Layer, PubSub, Stream } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerRespondable, HttpServerResponse } from "effect/http"
import { Standing } from "../src/http/origins.ts"
import { asHttp, toServerFault } from "../src/mcp/server.ts"
import { makeEndpoint, judgeStranger, readMessage, webRequest } from "../src/mcp/endpoint.ts"
import type {
  ListenFilter,
  Offer,
  CapabilityPrompt,
  CapabilityResources,
  Telling
} from "../src/mcp/capability.ts"
import { makeSessionStream } from "../src/mcp/sessions.ts"
import { fixtureTasks } from "./mcp-fixture-tasks.ts"
import { fixtureAskingPrompt, fixtureTools, pixelPng } from "./mcp-fixture-tools.ts"

const fixtureRoutes = Effect.gen(function* () {
  const standing = yield* Standing
  const door = yield* makeEndpoint
  const offers = [yield* fixtureOffer, yield* fixtureTasks]
  const openEnded = yield* makeSessionStream
  const answer = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    yield* judgeStranger(standing)
    const message = yield* readMessage
    if ("refusal" in message) return HttpServerResponse.fromWeb(message.refusal)
    const response = yield* door.serve({
      request: webRequest(request),
      body: message.body,
      bearer: "nobody",
      binding: "nobody",
      owner: "nobody",
      words: {
        name: "tropism-fixtures",
        title: "Tropism",
        version: "1.0.0",
        instructions: "For the conformance suite."
      },
      offers: () => offers
    })
    return asHttp(response, message.body, openEnded(request.method, undefined, undefined, Effect.never))
  }).pipe(Effect.catch(HttpServerRespondable.toResponse), Effect.catchDefect(toServerFault))
  return HttpRouter.add("*", "/mcp-fixtures", answer)
})

/** Serves `/mcp-fixtures`. */
export const mcpFixtures = Layer.unwrap(fixtureRoutes)

type List = "tools" | "prompts"

/** The tools, prompts and resources that the suite uses. */
const fixtureOffer = Effect.map(PubSub.sliding<List>(16), (changes): Offer => ({
  tools: fixtureTools((list) => PubSub.publish(changes, list)),
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

const resources: CapabilityResources = {
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

const prompts: ReadonlyArray<CapabilityPrompt> = [
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
