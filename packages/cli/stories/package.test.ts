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
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
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

/** Starts the installed server on a data folder, and answers how to ask it. */
const start = (bin: string, data: string, ...args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const server = yield* launch(bin, ["start", "--json", ...args], { TROPISM_DATA: data, PORT: "0" })
    yield* until(() => server.out().includes("\n") || server.code() !== undefined)
    expect(server.error()).toBe("")
    const { url } = JSON.parse(server.out().split("\n", 1)[0] ?? "")
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

describe("the package that npm pack makes", () => {
  it.live(
    "starts with its demo in an empty folder, chats and stops, and its folder starts elsewhere",
    () =>
      Effect.gen(function* () {
        const { bin, folder, manifest, own } = yield* installed
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
        yield* until(() => server.out().includes("Agents: ") || server.code() !== undefined)
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
})
