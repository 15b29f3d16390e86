/**
 * How the command behaves among other programs: exit codes, pipes that close, colours, and completions in a real shell.
 */
import { spawn, spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { newContext } from "../../server/testing/context-words.ts"
import { newStory, type Story } from "../../server/testing/platform.ts"
import { asking, askingModel } from "../../server/testing/question-words.ts"
import { make } from "../../server/testing/story-words.ts"
import { type ExitCode, exitCodeMeanings } from "../src/exit-codes.ts"
import { until } from "../testing/invoke.ts"
import { launch, launcher } from "../testing/launch.ts"
import { onTerminal, programOnTerminal } from "../testing/terminal-process.ts"

const environmentOf = (story: Story) => ({ TROPISM_TOKEN: story.token })

const scriptOf = (shell: string): string =>
  spawnSync("node", [launcher, "--completions", shell], { encoding: "utf8", env: { PATH: nodePath } }).stdout

/** Whether a shell is on this machine; where it is not, its completions are read and not tried, and the test says so. */
const isHere = (shell: string): boolean => {
  const isThere = spawnSync(shell, ["-c", "true"]).status === 0
  if (!isThere) process.stdout.write(`${shell} is not installed: its completions are read and not tried.\n`)
  return isThere
}

const started = (story: Story, ...args: ReadonlyArray<string>) =>
  launch(launcher, [...args, "--url", story.url], environmentOf(story))

const ended = (story: Story, ...args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const process = yield* started(story, ...args)
    yield* until(() => process.code() !== undefined)
    return { code: process.code(), out: process.out(), error: process.error() }
  })

/** Ends a command that would go on for ever. */
const signalled = (story: Story, signal: NodeJS.Signals, ...flags: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    yield* make(story, "Thing")
    const tail = yield* started(story, "tail", "--after", "0", ...flags)
    yield* until(() => tail.out().includes("Thing"))
    tail.process.kill(signal)
    yield* until(() => tail.code() !== undefined)
    return tail.code()
  })

/** What ends with each code. */
const endings: Readonly<Record<ExitCode, (story: Story) => Effect.Effect<unknown, unknown, never>>> = {
  0: (story) => Effect.map(Effect.scoped(ended(story, "runs")), ({ code }) => code),
  1: (story) => Effect.map(Effect.scoped(ended(story, "run", "nobody")), ({ code }) => code),
  2: (story) => Effect.map(Effect.scoped(ended(story, "runs", "--nope")), ({ code }) => code),
  3: (story) =>
    Effect.gen(function* () {
      yield* newContext(story, "asker", askingModel(asking("Which one?")), { tools: ["run.ask_user"] })
      const { items } = yield* story.get("/agents")
      const asker = items.find(({ name }: { readonly name: string }) => name !== "TodoAssistant")
      const run = yield* Effect.scoped(ended(story, "run", asker.name))
      expect([run.code, run.error]).toEqual([3, expect.stringContaining("tropism tasks")])
      return (yield* Effect.scoped(ended(story, "chat", "asker", "-m", "Hello"))).code
    }),
  130: (story) => Effect.scoped(signalled(story, "SIGINT")),
  143: (story) => Effect.scoped(signalled(story, "SIGTERM"))
}

// Bun puts itself before the PATH under the name of node.
const nodePath = (process.env["PATH"] ?? "")
  .split(":")
  .filter((folder) => !folder.includes("bun-node"))
  .join(":")

/** Runs lines in a bash of its own. */
const bash = (script: string, environment: Record<string, string> = {}) => {
  const folder = mkdtempSync(join(tmpdir(), "tropism-bash-"))
  const file = join(folder, "script.sh")
  writeFileSync(file, script)
  const { status, stderr, stdout } = spawnSync("bash", ["--norc", file], {
    encoding: "utf8",
    env: { PATH: nodePath, HOME: folder, ...environment }
  })
  rmSync(folder, { recursive: true })
  return { status, stdout, stderr }
}

/** A command whose reader takes one line: how many came, how both ended, and what was said of it. */
const pipedIntoHead = (command: string, environment: Record<string, string>) =>
  new Promise<{ readonly lines: number; readonly codes: string; readonly error: string }>((resolve) => {
    const child = spawn("bash", ["--norc", "-c", `${command} | head -1; echo "\${PIPESTATUS[*]}"`], {
      env: { PATH: nodePath, HOME: "/nowhere", ...environment }
    })
    const said = { out: "", error: "" }
    child.stdout.on("data", (text) => (said.out += String(text)))
    child.stderr.on("data", (text) => (said.error += String(text)))
    child.on("close", () => {
      const lines = said.out.trim().split("\n")
      resolve({ lines: lines.length - 1, codes: lines.at(-1) ?? "", error: said.error })
    })
  })

/** A command whose output nobody can keep: its exit code, and what it said of that. */
const intoFullDevice = (command: string, environment: Record<string, string>) =>
  new Promise<{ readonly code: string; readonly error: string }>((resolve) => {
    const child = spawn("bash", ["--norc", "-c", `${command} > /dev/full; echo "$?"`], {
      env: { PATH: nodePath, HOME: "/nowhere", ...environment }
    })
    const said = { out: "", error: "" }
    child.stdout.on("data", (text) => (said.out += String(text)))
    child.stderr.on("data", (text) => (said.error += String(text)))
    child.on("close", () => resolve({ code: said.out.trim(), error: said.error }))
  })

/** Each of these stories starts programs one after another, which a busy machine does slowly. */
const manyProgramsMs = 300_000

describe("Requirement: the command line among other programs", () => {
  it.live(
    "each exit code of the table is what a command ends with",
    () =>
      Effect.gen(function* () {
        const story = yield* newStory
        expect(Object.keys(endings)).toEqual(Object.keys(exitCodeMeanings))
        for (const [code, end] of Object.entries(endings))
          expect([code, yield* end(story)]).toEqual([code, Number(code)])
      }).pipe(Effect.provide(NodeServices.layer)),
    manyProgramsMs
  )

  it.live(
    "output that cannot be kept is a failure, and says that it is lost",
    () =>
      Effect.gen(function* () {
        const story = yield* newStory
        yield* make(story, "Thing")
        const commands = ["token create lost", "runs", "runs --json", "verify", "export", "tail --after 0"]
        const ends = yield* Effect.forEach(
          commands,
          (command) =>
            Effect.promise(() =>
              intoFullDevice(`node ${launcher} ${command} --url ${story.url}`, environmentOf(story))
            ),
          { concurrency: 2 }
        )
        for (const [index, { code, error }] of ends.entries())
          expect({ command: commands[index], code, error }).toEqual({
            command: commands[index],
            code: "1",
            error: expect.stringMatching(/\bENOSPC\b/)
          })
        expect(ends.map(({ error }) => error.trim().split("\n").length)).toEqual(commands.map(() => 1))
      }).pipe(Effect.provide(NodeServices.layer)),
    manyProgramsMs
  )

  it.live(
    "a project that is called as the server's commands are changes no exit code",
    () =>
      Effect.gen(function* () {
        const story = yield* newStory
        yield* make(story, "Thing")
        const renamed = yield* ended(story, "projects", "rename", "demo")
        expect([renamed.code, renamed.error]).toEqual([0, ""])
        for (const command of ["export -o -", "dump -o -", "runs"]) {
          const { code, error } = yield* Effect.promise(() =>
            intoFullDevice(
              `node ${launcher} ${command} --project demo --url ${story.url}`,
              environmentOf(story)
            )
          )
          expect([command, code, error]).toEqual([command, "1", expect.stringMatching(/\bENOSPC\b/)])
        }
        const ends = { SIGTERM: 143, SIGINT: 130 } as const
        for (const signal of ["SIGTERM", "SIGINT"] as const)
          expect([signal, yield* Effect.scoped(signalled(story, signal, "--project", "demo"))]).toEqual([
            signal,
            ends[signal]
          ])
      }).pipe(Effect.provide(NodeServices.layer)),
    manyProgramsMs
  )

  it.live(
    "a reader that has seen enough ends it without a word, whatever is left to print",
    () =>
      Effect.gen(function* () {
        const story = yield* newStory
        const objects = Array.from({ length: 500 }, (_, n) =>
          JSON.stringify({ type: "Load", key: `k${n}`, properties: { text: "x".repeat(400) } })
        )
        const body = `${objects.join("\n")}\n`
        const address = `/api/projects/${story.projectId}/import?format=jsonl`
        const headers = { "content-type": "application/octet-stream" }
        expect((yield* story.send("POST", address, body, headers)).status).toBe(200)
        const at = `--url ${story.url}`
        const command = `node ${launcher}`
        for (const printing of [
          `export ${at}`,
          `export --quiet --json ${at}`,
          `tail --after 0 ${at}`,
          "--help"
        ]) {
          const piped = yield* Effect.promise(() =>
            pipedIntoHead(`${command} ${printing}`, environmentOf(story))
          )
          expect([printing, piped]).toEqual([printing, { lines: 1, codes: "0 0", error: "" }])
        }
      }).pipe(Effect.provide(NodeServices.layer)),
    manyProgramsMs
  )

  it.live(
    "has colours on a terminal, none with NO_COLOR, and neither them nor bars elsewhere",
    () =>
      Effect.gen(function* () {
        const story = yield* newStory
        const shown = (environment: Record<string, string>) =>
          Effect.scoped(
            Effect.gen(function* () {
              const { exitCode, seen, sees } = yield* onTerminal(["agents", "--url", story.url], {
                ...environmentOf(story),
                ...environment
              })
              yield* sees("TodoAssistant")
              expect(yield* exitCode).toBe(0)
              return seen()
            })
          )
        const colour = new RegExp(String.raw`\u001B\[[0-9;]*m`)
        expect(yield* shown({})).toMatch(colour)
        const plain = yield* shown({ NO_COLOR: "1" })
        expect(plain).toContain("TodoAssistant")
        expect(plain).not.toMatch(colour)
        const piped = yield* ended(story, "export", "--json", "-o", "/dev/null/none")
        expect([piped.code, piped.out]).toEqual([1, ""])
        const folder = mkdtempSync(join(tmpdir(), "tropism-quiet-"))
        const file = join(folder, "things.jsonl")
        writeFileSync(file, '{"type":"Thing","key":"one","properties":{}}\n')
        const loud = yield* ended(story, "import", file)
        const quiet = yield* ended(story, "import", "--quiet", file)
        rmSync(folder, { recursive: true })
        expect(loud.error).toMatch(/^[^\n]*\bthings\.jsonl: [^\n]+\n$/)
        expect(loud.out).toMatch(/^\D*\b1\b\D*\n$/)
        expect(quiet).toEqual({ code: 0, out: expect.stringMatching(/^\D*\b1\b\D*\n$/), error: "" })
        expect(quiet.out).not.toBe(loud.out)
      }).pipe(Effect.provide(NodeServices.layer)),
    manyProgramsMs
  )
})

describe("Requirement: shell completions", () => {
  it("in a real bash, ta<TAB> is tail and tasks, and a command's own words follow it", () => {
    const complete = (...words: ReadonlyArray<string>) => `
      COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")})
      COMP_CWORD=${words.length - 1}
      COMP_LINE='${words.join(" ")}'
      COMP_POINT=\${#COMP_LINE}
      COMPREPLY=()
      "$(complete -p tropism | sed -E 's/.*-F ([^ ]+) .*/\\1/')" tropism '${words.at(-1)}' '${words.at(-2)}'
      printf '%s ' "\${COMPREPLY[@]}" | tr -s ' ' '\\n' | sort | tr '\\n' ' '
      echo`
    const { status, stderr, stdout } = bash(
      `source <(node ${launcher} --completions bash)
      ${complete("tropism", "ta")}
      ${complete("tropism", "agents", "en")}
      ${complete("tropism", "runs", "--status", "comp")}
      ${complete("tropism", "tasks", "--ass")}
      complete -p tropism
      ${complete("tropism", "--completions", "")}`
    )
    expect([status, stderr]).toEqual([0, ""])
    expect(stdout.split("\n").map((line) => line.trim())).toEqual([
      "tail tasks",
      "enable",
      "completed",
      "--assignee",
      // Files, where the command has no word to offer.
      expect.stringMatching(/^complete .*-o default .*-F \w+ tropism$/),
      "bash fish zsh",
      ""
    ])
  })

  it("in a real fish, a command that takes a file offers files, and --completions the shells", () => {
    expect(scriptOf("fish")).toMatch(/seen_subcommand_from dump.* -l output .* -r -F$/m)
    if (!isHere("fish")) return
    const folder = mkdtempSync(join(tmpdir(), "tropism-fish-"))
    writeFileSync(join(folder, "notes.jsonl"), "")
    const lines = ["import no", "agents apply --file no", "dump -o no", "--completions f", "runs no"]
    const { stderr, stdout } = spawnSync(
      "fish",
      [
        "--no-config",
        "-c",
        `node ${launcher} --completions fish | source; ${lines.map((line) => `echo "$(complete -C 'tropism ${line}' | string join ,)"`).join("; ")}`
      ],
      { encoding: "utf8", cwd: folder, env: { PATH: nodePath, HOME: folder } }
    )
    rmSync(folder, { recursive: true })
    expect([stderr, stdout.split("\n")]).toEqual([
      "",
      ["notes.jsonl", "notes.jsonl", "notes.jsonl", expect.stringMatching(/^fish\b/), "", ""]
    ])
  })

  it.live("in a real zsh on a terminal, they do so, too", () =>
    Effect.gen(function* () {
      expect(scriptOf("zsh")).toContain("--output[")
      if (!isHere("zsh")) return
      const folder = mkdtempSync(join(tmpdir(), "tropism-zsh-"))
      writeFileSync(join(folder, "notes.jsonl"), "")
      const script = spawnSync("node", [launcher, "--completions", "zsh"], {
        encoding: "utf8",
        env: { PATH: nodePath }
      }).stdout
      writeFileSync(join(folder, "_tropism"), script)
      const zsh = yield* programOnTerminal(["zsh", "-f", "-i"], { PATH: nodePath, HOME: folder })
      yield* zsh.press(
        `cd ${folder}; fpath=(${folder} $fpath); autoload -Uz compinit; compinit -u -D; echo rea''dy\r`
      )
      yield* zsh.sees("ready")
      for (const [typed, seen] of [
        ["import no", "import notes.jsonl"],
        ["agents apply --file no", "--file notes.jsonl"],
        ["--completions f", "--completions fish"]
      ]) {
        yield* zsh.press(`tropism ${typed}\t`)
        yield* zsh.sees(seen ?? "")
        yield* zsh.press("\u0015")
      }
      rmSync(folder, { recursive: true })
    }).pipe(Effect.scoped)
  )
})
