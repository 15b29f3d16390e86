/**
 * The key that a server makes for itself: it is there whole or not at all, whenever the server dies, and one for all.
 */
import { NodeServices } from "@effect/platform-node"
import { expect, layer } from "@effect/vitest"
import { Effect, Exit, FileSystem, Redacted } from "effect"
import { findSealingKeys, keyFile } from "./sealing.ts"

const newFolder = Effect.flatMap(FileSystem.FileSystem, (fileSystem) => fileSystem.makeTempDirectoryScoped())

const keyText = Buffer.alloc(32, 7).toString("base64")

const find = (dataFolder: string) => findSealingKeys({ given: undefined, dataFolder, mayMake: true })

/** The one key that is found. */
const found = (dataFolder: string) =>
  Effect.map(find(dataFolder), (answer) =>
    "keys" in answer ? answer.keys.map(({ id }) => id) : answer.fault
  )

/** Finds keys in a program that is killed while it uses files. */
const killed = (dataFolder: string, broken: Partial<FileSystem.FileSystem>) =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    const exit = yield* Effect.exit(
      Effect.provideService(find(dataFolder), FileSystem.FileSystem, { ...fileSystem, ...broken })
    )
    expect(Exit.isFailure(exit)).toBe(true)
  })

layer(NodeServices.layer, { excludeTestServices: true })("A server without a key makes one", (it) => {
  it.effect("that is the same at its next start, readable by its owner alone, with nothing beside it", () =>
    Effect.gen(function* () {
      const fileSystem = yield* FileSystem.FileSystem
      const folder = yield* newFolder
      const first = yield* found(folder)
      expect(first).toEqual([expect.any(String)])
      expect(yield* found(folder)).toEqual(first)
      expect((yield* fileSystem.stat(`${folder}/${keyFile}`)).mode & 0o777).toBe(0o600)
      expect(yield* fileSystem.readDirectory(folder)).toEqual([keyFile])
    })
  )

  it.effect("that is one for all who begin at once", () =>
    Effect.gen(function* () {
      const folder = yield* newFolder
      const all = yield* Effect.all(
        Array.from({ length: 12 }, () => found(folder)),
        { concurrency: 12 }
      )
      expect(all[0]).toEqual([expect.any(String)])
      expect(new Set(all.flat()).size).toBe(1)
    })
  )

  it.effect("and starts again after it was killed at any step of that", () =>
    Effect.gen(function* () {
      const fileSystem = yield* FileSystem.FileSystem
      const dies = () => Effect.die("killed")
      const kills: ReadonlyArray<readonly [string, Partial<FileSystem.FileSystem>]> = [
        ["with the folder there", { makeTempDirectoryScoped: dies }],
        [
          "with a file that has nothing in it",
          {
            open: (path, options) => Effect.andThen(Effect.scoped(fileSystem.open(path, options)), dies()),
            writeFileString: (path, _text, options) =>
              Effect.andThen(fileSystem.writeFileString(path, "", options), dies())
          }
        ],
        ["with all of it written", { link: dies }]
      ]
      for (const [what, broken] of kills) {
        const folder = yield* newFolder
        yield* killed(folder, broken)
        const first = yield* found(folder)
        expect([what, first]).toEqual([what, [expect.any(String)]])
        expect(yield* found(folder)).toEqual(first)
      }
    })
  )

  it.effect("also in the place of a file without a word, and never in the place of another", () =>
    Effect.gen(function* () {
      const fileSystem = yield* FileSystem.FileSystem
      const folder = yield* newFolder
      yield* fileSystem.writeFileString(`${folder}/${keyFile}`, "")
      const first = yield* found(folder)
      expect(first).toEqual([expect.any(String)])
      yield* fileSystem.writeFileString(`${folder}/${keyFile}`, "not a key")
      const fault = yield* found(folder)
      expect(fault).toContain(`${folder}/${keyFile}`)
      expect(fault).toContain("openssl rand -base64 32")
      expect(yield* fileSystem.readFileString(`${folder}/${keyFile}`)).toBe("not a key")
      const given = Redacted.make(keyText)
      expect(yield* findSealingKeys({ given, dataFolder: folder, mayMake: true })).toMatchObject({
        keys: [{}]
      })
    })
  )

  it.effect("in a folder that is made for its owner alone, and in one that was there as it was", () =>
    Effect.gen(function* () {
      const fileSystem = yield* FileSystem.FileSystem
      const folder = yield* newFolder
      const modeOf = (path: string) => Effect.map(fileSystem.stat(path), ({ mode }) => mode & 0o777)
      yield* found(`${folder}/above/data`)
      yield* fileSystem.chmod(folder, 0o755)
      yield* found(folder)
      expect([yield* modeOf(`${folder}/above/data`), yield* modeOf(folder)]).toEqual([0o700, 0o755])
    })
  )
})

layer(NodeServices.layer, { excludeTestServices: true })("Keys that are given", (it) => {
  it.effect("are refused where one of them is empty", () =>
    Effect.gen(function* () {
      for (const text of [`${keyText},`, `,${keyText}`, `${keyText}, ,${keyText}`, ","])
        expect([
          text,
          yield* findSealingKeys({ given: Redacted.make(text), dataFolder: "/nonexistent", mayMake: false })
        ]).toEqual([text, { fault: expect.stringContaining("TROPISM_ENCRYPTION_KEY") }])
      const both = { given: Redacted.make(` ${keyText} , ${keyText}\n`), dataFolder: "/nonexistent" }
      expect(yield* findSealingKeys({ ...both, mayMake: false })).toMatchObject({ keys: [{}, {}] })
    })
  )
})
