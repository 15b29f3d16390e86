/**
 * The program `mortal-server.ts` as one file, made once for all that a thread starts of it.
 *
 * A server is made of a thousand files, and to read them is most of a start.
 * It is the same program, as the package has it: only where its parts lie is another.
 */
import { cpSync, mkdtempSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { inject } from "vitest"

const source = fileURLToPath(new URL("mortal-server.ts", import.meta.url))

/** What the server reads beside itself. */
const scripts = fileURLToPath(new URL("../src/models/scripts", import.meta.url))

let made: Promise<string> | undefined

const make = (): Promise<string> => {
  // It is removed with the folder of the run.
  const folder = mkdtempSync(join(inject("postgres").runFolder, "mortal-"))
  cpSync(scripts, join(folder, "scripts"), { recursive: true })
  const file = join(folder, "mortal-server.js")
  const minify = { whitespace: true, syntax: true, identifiers: false }
  return Bun.build({ entrypoints: [source], target: "bun", minify })
    .then(({ outputs }) => outputs[0]?.text() ?? "")
    .then((text) => {
      // A text of a library that looks like a source map's address is none.
      writeFileSync(file, text.replaceAll("sourceMappingURL=", "sourceMappingURL:"))
      return file
    })
}

/** Where the program lies. */
export const mortalProgram: Effect.Effect<string> = Effect.promise(() => (made ??= make()))
