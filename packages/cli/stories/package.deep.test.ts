/**
 * The package as a stranger has it: in an empty folder, with what npm installs beside it and nothing of the checkout.
 *
 * npm itself is not asked to install it, because that needs a registry: the
 * tarball is unpacked, and beside it lies what its package.json names.
 */
import { spawnSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { inject } from "vitest"
import { nameOf } from "../../server/src/cluster/peers.ts"
import { withDatabase } from "../../server/src/database/postgres-access.ts"
import { freeAddress } from "../../server/testing/cluster-servers.ts"
import { newContext, say } from "../../server/testing/context-words.ts"
import { openStream } from "../../server/testing/event-stream.ts"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import {
  doorsAt,
  eventually,
  newProject,
  scripted,
  storyKeys,
  storyToken
} from "../../server/testing/platform.ts"
import { quickDataFolder } from "../../server/testing/quick-folder.ts"
import { until } from "../testing/invoke.ts"
import { launch, type Launched } from "../testing/launch.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))

/** Packs the checkout and installs the tarball in an empty folder. */
const installed = Effect.map(quickDataFolder, (folder) => {
  const packed = spawnSync(process.execPath, ["scripts/pack.ts", folder], { cwd: root, encoding: "utf8" })
  expect([packed.status, packed.stdout]).toEqual([0, expect.stringMatching(/^\d+ files, .* MB packed/m)])
  const own = join(folder, "node_modules", "tropism")
  mkdirSync(own, { recursive: true })
  const [tarball = ""] = readdirSync(folder).filter((file) => file.endsWith(".tgz"))
  spawnSync("tar", ["xzf", join(folder, tarball), "-C", own, "--strip-components=1"])
  const manifest = JSON.parse(readFileSync(join(own, "package.json"), "utf8"))
  for (const name of Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies })) {
    const place = join(folder, "node_modules", name)
    mkdirSync(dirname(place), { recursive: true })
    symlinkSync(join(root, "node_modules", name), place)
  }
  return { folder, own, manifest, bin: join(own, manifest.bin.tropism) }
})

/** It takes seconds to pack: all stories have the same one. */
class Installed extends Context.Service<Installed, Effect.Success<typeof installed>>()("Installed") {
  static readonly layer = Layer.effect(Installed, installed)
}

/** Starts the installed server, and answers where it is reached. */
const launchServer = (bin: string, environment: Record<string, string>, ...args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const server = yield* launch(bin, ["start", "--json", ...args], { PORT: "0", ...environment })
    yield* until(() => server.out().includes("\n") || server.code() !== undefined)
    expect(server.error()).toBe("")
    const { url }: { url: string } = JSON.parse(server.out().split("\n", 1)[0] ?? "")
    return { server, url }
  })

/** Starts it on a data folder, and answers how to ask it. */
const start = (bin: string, data: string, ...args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { server, url } = yield* launchServer(bin, { TROPISM_DATA: data }, ...args)
    const authorization = `Bearer ${readFileSync(join(data, "token"), "utf8").trim()}`
    const ask = (path: string, body?: unknown) =>
      Effect.promise(() =>
        fetch(url + path, {
          headers: { authorization, "content-type": "application/json" },
          ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) })
        }).then((answer) => answer.text().then((text) => ({ status: answer.status, text })))
      )
    return { ask, server }
  })

const stop = (server: Launched) =>
  Effect.gen(function* () {
    server.process.kill("SIGTERM")
    yield* until(() => server.code() !== undefined)
    expect(server.code()).toBe(0)
  })

const shared = { excludeTestServices: true, timeout: "5 minutes" } as const

layer(Installed.layer, shared)("the package that npm pack makes", (it) => {
  it.effect(
    "starts with its demo in an empty folder, chats and stops, and its folder starts elsewhere",
    () =>
      Effect.gen(function* () {
        const { bin, folder, manifest, own } = yield* Installed
        const files = readdirSync(own, { recursive: true, encoding: "utf8" })
        expect(
          files.filter((file) => /\.(test|soak)\.|\.tsx?$|stories|testing|bench|specs/.test(file))
        ).toEqual([])
        const versions = Object.values({ ...manifest.dependencies, ...manifest.optionalDependencies })
        expect(versions.filter((version) => !/^\d+\.\d+\.\d+[\w.-]*$/.test(String(version)))).toEqual([])
        const texts = files.filter((name) => /\.(js|mjs|json|txt)$/.test(name))
        const here = root.replace(/\/$/, "")
        expect(texts.filter((file) => readFileSync(join(own, file), "utf8").includes(here))).toEqual([])

        const version = yield* launch(bin, ["--version"])
        yield* until(() => version.code() !== undefined)
        expect([version.code(), version.out()]).toEqual([0, `tropism v${manifest.version}\n`])

        const data = join(folder, "data")
        const { ask, server } = yield* start(bin, data, "--demo")
        expect((yield* ask("/ready")).status).toBe(200)
        expect((yield* ask("/docs")).status).toBe(200)
        const page = yield* ask("/")
        const [script] = page.text.match(/\/assets\/[\w-]+\.js/) ?? []
        expect((yield* ask(script ?? "/no-script")).status).toBe(200)

        // The demo's agents need its files, a chat the script that stands in for a model.
        yield* until(() => server.out().includes("licence-review") || server.code() !== undefined)
        const { items: projects } = JSON.parse((yield* ask("/api/projects")).text)
        expect(projects).toMatchObject([{ name: "Demo" }])
        const chat = yield* ask(`/api/projects/${projects[0].id}/chat`, {
          message: "Add buy milk to my list"
        })
        expect(JSON.parse(chat.text)).toMatchObject({
          toolCalls: [{ tool: "add_task", arguments: { title: expect.stringMatching(/buy milk/i) } }]
        })

        yield* stop(server)
        expect(server.error()).toBe("")

        // The backup of an embedded database: a copy of the folder of a stopped server, put anywhere.
        const restored = join(folder, "restored")
        spawnSync("cp", ["-a", data, restored])
        rmSync(data, { recursive: true })
        const again = yield* start(bin, restored)
        const todos = yield* again.ask(`/api/projects/${projects[0].id}/tasks?type=todo`)
        expect(JSON.parse(todos.text).items).toMatchObject([{ title: expect.stringMatching(/buy milk/i) }])
        yield* stop(again.server)
      }),
    300_000
  )

  it.effect(
    "starts servers that work together on one database: words that are made at one are heard at both",
    () =>
      Effect.gen(function* () {
        const { bin, folder } = yield* Installed
        const access = yield* freshDatabase
        const { pathname } = new URL(Redacted.value(access.ownerUrl))
        const databaseUrl = withDatabase(Redacted.make(inject("postgres").adminUrl), pathname.slice(1))
        const startOne = Effect.flatMap(freeAddress, (at) => {
          const environment = {
            TROPISM_DATA: join(folder, nameOf(at)),
            TROPISM_CLUSTER_ADDRESS: nameOf(at),
            TROPISM_TOKEN: storyToken,
            TROPISM_ENCRYPTION_KEY: storyKeys,
            DATABASE_URL: Redacted.value(databaseUrl)
          }
          return launchServer(bin, environment, "--cluster")
        })
        const servers = yield* Effect.all([startOne, startOne], { concurrency: 2 })
        const doors = servers.map(({ url }) => doorsAt(url, ""))
        const [first = doorsAt("", "")] = doors
        const story = yield* newProject(first, access)
        yield* newContext(story, "talk", scripted([{ say: "Both of us hear it", tokensPerSecond: 20 }]))
        const path = `/api/projects/${story.projectId}/contexts/talk/events?after=start`
        const streams = yield* Effect.forEach(doors, (one) => openStream(one, path))
        const heardAtBoth = Effect.sync(() => {
          const [here = [], there = []] = streams.map(({ heard }) =>
            heard.filter(({ name }) => name === "TextDeltaEvent").map(({ json }) => json.id)
          )
          return here.filter((id) => there.includes(id))
        })
        // What is said before the servers have found each other passes by: it is said until it is heard.
        yield* eventually(
          Effect.andThen(say(story, "talk", "Go on"), heardAtBoth),
          ({ length }) => length > 0,
          20_000,
          [500, 1_000]
        )
        yield* Effect.forEach(servers, ({ server }) => stop(server), { concurrency: 2 })
      }),
    300_000
  )
})
