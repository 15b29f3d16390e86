/**
 * A foreign server's definition is the same after it was shown in a form and sent back.
 */
import { describe, expect, it } from "@effect/vitest"
import { draftOf, hasHiddenArguments, inputOf } from "./server-words.ts"

const shared = { allowedTools: ["search_*", "get"], allowedEvents: ["order.*"], untrusted: true }

describe("a server's form", () => {
  it.each([
    {
      name: "shop",
      transport: {
        type: "http",
        url: "https://shop.example/mcp",
        headers: {
          authorization: { secret: "TROPISM_SECRET_SHOP", prefix: "Bearer " },
          "x-key": { secret: "TROPISM_SECRET_KEY" },
          "x-plain": "a: b"
        }
      },
      ...shared
    },
    {
      name: "crm",
      transport: { type: "http", url: "https://crm.example/mcp", headers: {} },
      authorization: {
        type: "oauth",
        per: "member",
        clientId: "crm",
        clientSecret: { secret: "TROPISM_SECRET_CRM" },
        scopes: ["a", "b:c"]
      },
      ...shared
    },
    {
      name: "tools",
      transport: {
        type: "stdio",
        command: "npx",
        args: ["-y", "a tool", "--key=1"],
        env: { KEY: { secret: "TROPISM_SECRET_KEY" }, MODE: "a=b" }
      },
      ...shared
    }
  ] as const)("of $name says what it was given", (definition) => {
    expect(inputOf(draftOf(definition as never))).toEqual(definition)
  })

  it("leaves what no line shows as it was, beside a line that was changed", () => {
    const transport = {
      type: "stdio",
      command: "sh",
      args: ["-c", "one\ntwo", ""],
      env: { PAD: " a ", PLAIN: "TROPISM_SECRET_A", MODE: "x" }
    } as const
    const draft = draftOf({ name: "shop", transport, ...shared })
    expect(inputOf({ ...draft, env: `${draft.env}y` }, transport).transport).toEqual({
      ...transport,
      env: { ...transport.env, MODE: "xy" }
    })
    expect(hasHiddenArguments({ transport })).toBe(true)
    expect(hasHiddenArguments({ transport: { ...transport, args: ["-c", " a "] } })).toBe(false)
  })

  it("sends what was typed, and leaves judging to the server", () => {
    expect(
      inputOf({
        ...draftOf(undefined),
        name: " shop ",
        url: " https://x ",
        headers: "Oops\n\nA:b",
        allowedTools: " a\n b* ",
        allowedEvents: "c\n"
      })
    ).toEqual({
      name: "shop",
      transport: { type: "http", url: "https://x", headers: { Oops: "", A: "b" } },
      allowedTools: ["a", "b*"],
      allowedEvents: ["c"],
      untrusted: false
    })
  })
})
