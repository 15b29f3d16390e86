/**
 * The real server as a process of its own, on a data folder that outlives it.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { invokeWith, until } from "./invoke.ts"
import { launch, type Launched, launcher } from "./launch.ts"

/** Kills the program itself: the launcher would let it stop. */
export const kill = (server: Launched) =>
  Effect.gen(function* () {
    const launcherId = String(server.process.pid)
    const children = readFileSync(`/proc/${launcherId}/task/${launcherId}/children`, "utf8").trim().split(" ")
    for (const child of children) process.kill(Number(child), "SIGKILL")
    yield* until(() => server.code() !== undefined)
  })

/** Starts it on a data folder and answers its doors. */
export const start = (data: string, port = "0", environment: Record<string, string> = {}) =>
  Effect.gen(function* () {
    const level = environment["TROPISM_LOG"] === undefined ? [] : ["--log-level", "info"]
    const server = yield* launch(launcher, ["start", "--json", ...level], {
      TROPISM_DATA: data,
      PORT: port,
      ...environment
    })
    yield* until(() => server.out().includes("\n") || server.code() !== undefined)
    const ready: { readonly url: string } = JSON.parse(server.out())
    const token = readFileSync(join(data, "token"), "utf8").trim()
    const get = (path: string) =>
      Effect.promise(() =>
        fetch(ready.url + path, { headers: { authorization: `Bearer ${token}` } }).then((answer) =>
          answer.json()
        )
      )
    /** All items of a list, page by page. */
    const all = (path: string) =>
      Effect.gen(function* () {
        const items: Array<Record<string, unknown>> = []
        let cursor: string | null = null
        do {
          const page: { items: Array<Record<string, unknown>>; nextCursor: string | null } = yield* get(
            `${path}${path.includes("?") ? "&" : "?"}limit=200${cursor === null ? "" : `&cursor=${cursor}`}`
          )
          items.push(...page.items)
          cursor = page.nextCursor
        } while (cursor !== null)
        return items
      })
    const tropism = (...args: ReadonlyArray<string>) =>
      invokeWith({ TROPISM_DATA: data }, ...args, "--url", ready.url)
    return { server, url: ready.url, token, get, all, tropism }
  })
