/**
 * What stories of dumps and restores say.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import type { Doors } from "../../server/testing/platform.ts"
import { invokeWith } from "./invoke.ts"

export const tropism = (doors: Doors, ...args: ReadonlyArray<string>) =>
  invokeWith({ TROPISM_TOKEN: doors.token }, ...args, "--url", doors.url)

/** What a command that goes well prints as JSON. */
export const json = (doors: Doors, ...args: ReadonlyArray<string>) =>
  Effect.map(tropism(doors, ...args, "--json"), ({ error, out }) => {
    expect(error).toBe("")
    return JSON.parse(out.join("\n"))
  })

/** A folder for the files of a story, until the scope ends. */
export const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "dumps-"))),
  (made) => Effect.sync(() => rmSync(made, { recursive: true }))
)
