/**
 * The real server, started with its kill switch on.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { quickDataFolder } from "../../server/testing/quick-folder.ts"
import { until } from "../testing/invoke.ts"
import { launch, launcher } from "../testing/launch.ts"
import { kill, start } from "../testing/real-server.ts"

const launched = (data: string, reason: string) =>
  launch(launcher, ["start", "--kill-switch", reason], { TROPISM_DATA: data, PORT: "0" })

describe("tropism start --kill-switch", () => {
  it.live(
    "stops all agents before anything works and says so; that stays until somebody lets them go on",
    () =>
      Effect.gen(function* () {
        const data = yield* quickDataFolder
        const first = yield* launched(data, "Restored from Tuesday")
        yield* until(() => first.out().includes("Ctrl-C") || first.code() !== undefined)
        expect(first.out()).toContain("Restored from Tuesday")
        yield* kill(first)
        const { server, tropism } = yield* start(data)
        expect(JSON.parse(server.out())).toMatchObject({ type: "ready", stopped: "Restored from Tuesday" })
        expect((yield* tropism("kill-switch", "--server")).out).toEqual([
          expect.stringMatching(/\badmin\b.*Restored from Tuesday$/)
        ])
        const off = yield* tropism("kill-switch", "off", "--server", "--json")
        expect(JSON.parse(off.out.join("\n"))).toEqual({ stopped: null })
      })
  )

  it.live("asks for a reason before anything is made", () =>
    Effect.gen(function* () {
      const refused = yield* launched("/nonexistent", " ")
      yield* until(() => refused.code() !== undefined)
      expect(refused.code()).toBe(2)
      expect(refused.error()).toContain("--kill-switch")
    })
  )
})
