/**
 * The package as a stranger has it: installed in an empty folder, held by a compiler, at work in Node and in a browser.
 */
import { spawn, spawnSync } from "node:child_process"
import { copyFileSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { launchChromium } from "../../console/testing/chromium.ts"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { startMortal } from "../../server/testing/mortal-servers.ts"
import { newProject, storyToken } from "../../server/testing/platform.ts"
import { quickDataFolder } from "../../server/testing/quick-folder.ts"
import { cuttingProxy } from "../testing/cutting-proxy.ts"
import type { run } from "../testing/strangers-program.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))

/** Each line is wrong by itself. */
const wrongLines = [
  'client.objects.create({ typ: "Person" })',
  'client.objects.create({ type: "Person", propertys: {} })',
  'client.agents.create({ name: "teller" })',
  'client.chat.send("Hello")',
  'client.tasks.list({ status: "done" })',
  'client.objects.list({ limit: "many" })',
  'client.objects.get("1").then((object) => object.kee)',
  "client.objects.get()",
  "client.object.get",
  'if (isProblem(problem, "conflicts")) throw problem',
  'if (isProblem(problem, "not-found")) problem.problem.existingId'
]

const compilerOptions = {
  strict: true,
  skipLibCheck: false,
  target: "ES2022",
  lib: ["ES2022", "DOM", "DOM.Iterable", "DOM.AsyncIterable"],
  module: "NodeNext",
  types: [],
  rootDir: ".",
  outDir: "out"
}

/** Packs the client and installs the tarball, without a registry, in an empty folder. */
const installed = Effect.map(quickDataFolder, (folder) => {
  const packed = spawnSync(process.execPath, ["scripts/pack-client.ts", folder], {
    cwd: root,
    encoding: "utf8"
  })
  expect([packed.status, packed.stderr]).toEqual([0, ""])
  const [tarball = ""] = packed.stdout.split("\n")
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }))
  const install = ["install", tarball, "--offline", "--no-audit", "--no-fund"]
  const npm = spawnSync("npm", install, { cwd: folder, encoding: "utf8" })
  expect([npm.status, npm.stdout]).toEqual([0, expect.stringContaining("added 1 package")])
  return folder
})

/** What a compiler says of a stranger's files: the file and the line of each complaint. */
const compiled = (folder: string, ...files: ReadonlyArray<string>) => {
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files }))
  const tsc = join(root, "node_modules/typescript/bin/tsc")
  const { stdout } = spawnSync("node", [tsc, "-p", folder], { cwd: folder, encoding: "utf8" })
  return [...stdout.matchAll(/^(\S+)\((\d+),/gm)].map(([, file, line]) => `${file}:${line}`)
}

const inNode = (folder: string, args: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const program =
      'import { run } from "./out/program.js"; console.log(JSON.stringify(await run(...process.argv.slice(2))))'
    writeFileSync(join(folder, "main.mjs"), program)
    const child = spawn("node", ["main.mjs", ...args], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] })
    const [out, error] = await Promise.all([text(child.stdout), text(child.stderr)])
    expect(error).toBe("")
    return JSON.parse(out)
  })

const inChromium = (folder: string, url: string, args: ReadonlyArray<string>) =>
  Effect.promise(async () => {
    const browser = await launchChromium()
    try {
      const page = await browser.newPage()
      const own = { "@tropism/client": "/stranger/node_modules/@tropism/client/client.js" }
      const body = `<script type="importmap">${JSON.stringify({ imports: own })}</script>`
      await page.route("**/stranger/**", (route) => {
        const path = new URL(route.request().url()).pathname.replace("/stranger/", "")
        return path === ""
          ? route.fulfill({ body, contentType: "text/html" })
          : route.fulfill({ body: readFileSync(join(folder, path)), contentType: "text/javascript" })
      })
      await page.goto(`${url}/stranger/`)
      const program = `import("/stranger/out/program.js").then(({ run }) => run(...${JSON.stringify(args)}))`
      return await page.evaluate(program)
    } finally {
      await browser.close()
    }
  })

/** The second event of the feed, then in the chat the third words, and at once when it goes on. */
const cuts = [
  { text: "\nid: 2\n", times: 1 },
  { text: "event: words", times: 3 },
  { text: "event: words", times: 1 }
]

describe("the package of the client", () => {
  it.live("is installed alone, completes and refuses, and works in Node and in a browser across cuts", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const folder = yield* installed
        const own = join(folder, "node_modules/@tropism/client")
        expect(JSON.parse(readFileSync(join(own, "package.json"), "utf8"))).not.toHaveProperty("dependencies")
        const { length } = readFileSync(join(own, "client.js"))
        expect(length).toBeLessThan(160_000)
        const [, shown = ""] = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(own, "README.md"), "utf8")) ?? []
        writeFileSync(join(folder, "shown.ts"), shown)
        copyFileSync(join(root, "packages/client/testing/strangers-program.ts"), join(folder, "program.ts"))
        expect(compiled(folder, "program.ts", "shown.ts")).toEqual([])
        const head =
          'import { createClient, isProblem } from "@tropism/client"; const client = createClient({ url: "" }); declare const problem: unknown'
        writeFileSync(join(folder, "wrong.ts"), [head, ...wrongLines].join("\n"))
        expect([...new Set(compiled(folder, "wrong.ts"))]).toEqual(
          wrongLines.map((_, index) => `wrong.ts:${index + 2}`)
        )

        const access = { ...(yield* freshDatabase), embedded: false }
        const server = yield* startMortal(access)
        for (const place of ["Node", "a browser"] as const) {
          const { projectId } = yield* newProject(server, access)
          const proxy = yield* cuttingProxy(server.url, cuts)
          const args = [proxy.url, storyToken, projectId]
          const told: Awaited<ReturnType<typeof run>> =
            place === "Node" ? yield* inNode(folder, args) : yield* inChromium(folder, proxy.url, args)
          expect(proxy.left()).toEqual([])
          const { pieces, ...rest } = told
          expect(rest).toEqual({
            listed: [5, 4, 3, 2, 1],
            followed: [1, 2, 3, 4, 5],
            response: "alpha bravo charlie delta echo foxtrot golf hotel india juliett",
            problem: { status: 409, code: "keyTaken", isTheFirst: true },
            type: "not-found"
          })
          expect(pieces.join("")).toBe(rest.response)
          expect(pieces.length).toBeGreaterThan(2)
        }
      })
    )
  )
})
