/** Which model an agent gets, and what it is told where it gets none. */
import { describe, expect, it } from "@effect/vitest"
import type { ModelConfig } from "@tropism/domain/model-config"
import { Effect } from "effect"
import { ask, asking, modelsIn, textOf } from "../../testing/models.ts"
import { naming } from "../../testing/naming.ts"
import { Models } from "./models.ts"

const resolveIn = (env: Record<string, string>, agentName: string, model: ModelConfig | null = null) =>
  Effect.gen(function* () {
    const resolved = yield* (yield* Models).resolve({ agentName, model })
    return `${resolved.provider}:${resolved.name}`
  }).pipe(
    Effect.catchTag("ModelUnavailable", (error) => Effect.succeed(error.message)),
    Effect.provide(modelsIn(env))
  )

/** What an agent is told that gets no model: each way to give it one. */
const howToConfigure = /OPENAI_API_KEY.*TROPISM_MODEL/

describe("which model an agent asks", () => {
  const everything = {
    TROPISM_MODEL: "google:gemini-x",
    OPENAI_API_KEY: "sk-openai-0001",
    ANTHROPIC_API_KEY: "sk-anthropic-0001",
    GOOGLE_GENERATIVE_AI_API_KEY: "google-0001",
    OPENAI_COMPATIBLE_BASE_URL: "http://127.0.0.1:1",
    OPENAI_COMPATIBLE_MODEL: "llama"
  }

  it.effect("a server whose models nobody knows is no default, and can be asked by name", () =>
    Effect.gen(function* () {
      const env = { OPENAI_COMPATIBLE_BASE_URL: "http://127.0.0.1:1" }
      expect(yield* resolveIn(env, "licence-review")).toBe("scripted:licence-review")
      expect(yield* resolveIn(env, "x", { provider: "openai-compatible", name: "llama" })).toBe(
        "openai-compatible:llama"
      )
      expect(yield* resolveIn({ ...env, OPENAI_COMPATIBLE_MODEL: "llama" }, "x")).toBe(
        "openai-compatible:llama"
      )
      expect(yield* resolveIn({ ...env, TROPISM_MODEL: "openai-compatible" }, "x")).toContain(
        "OPENAI_COMPATIBLE_MODEL"
      )
    })
  )

  it.effect("its own comes first", () =>
    Effect.gen(function* () {
      expect(
        yield* resolveIn(everything, "licence-review", { provider: "anthropic", name: "claude-x" })
      ).toBe("anthropic:claude-x")
    })
  )

  it.effect("else TROPISM_MODEL, whose name may hold colons and may be left out", () =>
    Effect.gen(function* () {
      expect(yield* resolveIn(everything, "licence-review")).toBe("google:gemini-x")
      expect(yield* resolveIn({ ...everything, TROPISM_MODEL: "openai-compatible:llama3.1:8b" }, "x")).toBe(
        "openai-compatible:llama3.1:8b"
      )
      expect(yield* resolveIn({ ...everything, TROPISM_MODEL: "openai" }, "x")).toBe("openai:gpt-5.4")
      expect(yield* resolveIn({ ...everything, TROPISM_MODEL: "scripted" }, "licence-review")).toBe(
        "scripted:licence-review"
      )
    })
  )

  it.effect("else the first provider with a key, in a fixed order", () =>
    Effect.gen(function* () {
      const env: Record<string, string> = {
        ...everything,
        GOOGLE_VERTEX_PROJECT: "p",
        GOOGLE_VERTEX_LOCATION: "global",
        MISTRAL_API_KEY: "mistral-0001",
        OPENROUTER_API_KEY: "sk-or-0001",
        AWS_BEARER_TOKEN_BEDROCK: "bedrock-0001",
        AWS_REGION: "us-east-1"
      }
      const order: Array<string> = []
      for (const name of [
        "TROPISM_MODEL",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GOOGLE_GENERATIVE_AI_API_KEY",
        "GOOGLE_VERTEX_PROJECT",
        "MISTRAL_API_KEY",
        "OPENROUTER_API_KEY",
        "AWS_BEARER_TOKEN_BEDROCK",
        "OPENAI_COMPATIBLE_BASE_URL"
      ]) {
        delete env[name]
        order.push((yield* resolveIn(env, "licence-review")).split(":")[0] ?? "")
      }
      expect(order).toEqual([
        "openai",
        "anthropic",
        "google",
        "google-vertex",
        "mistral",
        "openrouter",
        "amazon-bedrock",
        "openai-compatible",
        "scripted"
      ])
    })
  )

  it.effect("else the built-in script of its name, and no other agent's", () =>
    Effect.gen(function* () {
      for (const name of ["licence-review", "install-script-watch", "daily-digest"]) {
        expect(yield* resolveIn({}, name)).toBe(`scripted:${name}`)
      }
      expect(yield* resolveIn({}, "somebody-else")).toMatch(howToConfigure)
    })
  )

  it.effect("a variable whose name begins alike hides nothing", () =>
    Effect.gen(function* () {
      expect(yield* resolveIn({ OPENAI_API_KEY: "sk-openai-0001", OPENAI_API_KEY_FILE: "/x" }, "x")).toBe(
        "openai:gpt-5.4"
      )
      expect(yield* resolveIn({ OPENAI_API_KEY_FILE: "/x" }, "x")).toMatch(howToConfigure)
      expect(yield* resolveIn({ TROPISM_MODEL_HINT: "1" }, "daily-digest")).toBe("scripted:daily-digest")
    })
  )

  it.effect(
    "Bedrock is asked by itself where its own key is set, and with an AWS account's key only by name",
    () =>
      Effect.gen(function* () {
        const account = { AWS_ACCESS_KEY_ID: "AKIA0001", AWS_SECRET_ACCESS_KEY: "s", AWS_REGION: "us-east-1" }
        expect(yield* resolveIn(account, "somebody-else")).toMatch(howToConfigure)
        expect(yield* resolveIn({ ...account, TROPISM_MODEL: "amazon-bedrock" }, "x")).toBe(
          "amazon-bedrock:global.anthropic.claude-sonnet-5-5"
        )
      })
  )

  it.effect("Azure has no default, since its models are called what the operator calls them", () =>
    Effect.gen(function* () {
      const env = { AZURE_API_KEY: "azure-0001", AZURE_RESOURCE_NAME: "ours" }
      expect(yield* resolveIn(env, "somebody-else")).toMatch(howToConfigure)
      expect(yield* resolveIn({ ...env, TROPISM_MODEL: "azure:ours" }, "x")).toBe("azure:ours")
      expect(yield* resolveIn({ ...env, TROPISM_MODEL: "azure" }, "x")).toEqual(
        naming("azure", "TROPISM_MODEL")
      )
    })
  )

  it.effect("an empty key is no key", () =>
    Effect.gen(function* () {
      expect(yield* resolveIn({ OPENAI_API_KEY: " ", ANTHROPIC_API_KEY: "" }, "somebody-else")).toMatch(
        howToConfigure
      )
    })
  )
})

describe("an agent without a model is told what to set", () => {
  it.effect("when its provider has no key, though another has", () =>
    Effect.gen(function* () {
      const message = yield* resolveIn({ ANTHROPIC_API_KEY: "sk-anthropic-0001" }, "licence-review", {
        provider: "openai",
        name: "gpt-4o"
      })
      expect(message).toEqual(naming("openai:gpt-4o", "OPENAI_API_KEY"))
      expect(message).not.toMatch(howToConfigure)
    })
  )

  it.effect("when TROPISM_MODEL names no provider, or one without a key", () =>
    Effect.gen(function* () {
      expect(yield* resolveIn({ TROPISM_MODEL: "gpt-4o" }, "licence-review")).toContain('"gpt-4o"')
      expect(yield* resolveIn({ TROPISM_MODEL: "openai:gpt-4o" }, "licence-review")).toContain(
        "OPENAI_API_KEY"
      )
    })
  )

  it.effect("when TROPISM_OPENAI_API names no API", () =>
    Effect.gen(function* () {
      const env = { OPENAI_API_KEY: "sk-openai-0001", TROPISM_OPENAI_API: "completions" }
      expect(yield* resolveIn(env, "x", { provider: "openai", name: "gpt-4o" })).toContain(
        "TROPISM_OPENAI_API"
      )
    })
  )

  it.effect("when its script is wrong, or there is none", () =>
    Effect.gen(function* () {
      expect(
        yield* resolveIn({}, "x", {
          provider: "scripted",
          name: "s",
          script: { rules: [{ when: "step ==" }] }
        })
      ).toMatch(/\b1\b/)
      expect(yield* resolveIn({}, "x", { provider: "scripted", name: "nowhere" })).toContain("nowhere")
    })
  )

  it.effect("when a Vertex location is not one", () =>
    Effect.gen(function* () {
      const message = yield* resolveIn(
        { GOOGLE_VERTEX_PROJECT: "p", GOOGLE_VERTEX_LOCATION: "evil.example/x" },
        "x",
        { provider: "google-vertex", name: "g" }
      )
      expect(message).toContain("Invalid Google Vertex location")
    })
  )
})

it.effect("a resource or a region that is an address is refused before a key is sent there", () =>
  Effect.gen(function* () {
    const azure = { AZURE_API_KEY: "azure-0001", AZURE_RESOURCE_NAME: "evil.example/x" }
    expect(yield* resolveIn(azure, "x", { provider: "azure", name: "d" })).toContain("AZURE_RESOURCE_NAME")
    const aws = { AWS_BEARER_TOKEN_BEDROCK: "bedrock-0001", AWS_REGION: "evil.example/x" }
    expect(yield* resolveIn(aws, "x", { provider: "amazon-bedrock", name: "m" })).toContain("AWS_REGION")
  })
)

describe("the providers of a server", () => {
  it.effect("say what is missing before they can be used", () =>
    Effect.gen(function* () {
      const { providers } = yield* Models
      expect(providers.map((status) => [status.provider, status.missing === null])).toEqual([
        ["openai", true],
        ["anthropic", false],
        ["google", false],
        ["google-vertex", false],
        ["mistral", false],
        ["openrouter", false],
        ["azure", false],
        ["amazon-bedrock", false],
        ["openai-compatible", false],
        ["scripted", true],
        ["replay", true]
      ])
      expect(providers[1]?.missing).toContain("ANTHROPIC_API_KEY")
    }).pipe(Effect.provide(modelsIn({ OPENAI_API_KEY: "sk-openai-0001" })))
  )
})

it.effect("a script in the definition goes before a built-in one", () =>
  Effect.gen(function* () {
    const parts = yield* ask(
      { provider: "scripted", name: "licence-review", script: { rules: [{ say: "mine" }] } },
      asking("hi")
    )
    expect(textOf(parts)).toBe("mine")
    expect(parts.at(-1)).toMatchObject({
      type: "finish",
      reason: "stop",
      provider: "scripted",
      name: "licence-review"
    })
  }).pipe(Effect.provide(modelsIn({})))
)
