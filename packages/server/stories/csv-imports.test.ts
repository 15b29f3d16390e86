/**
 * Tables: each row of a CSV file is an object, and each bad row is told by its line.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { transferLimits } from "../src/limits.ts"
import { beginSending, hasCommitted } from "../testing/import-sender.ts"
import { allOf, importFile, importLines } from "../testing/import-words.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { countRows, expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { type Named, naming, namingAll } from "../testing/naming.ts"

const objectsOf = (story: Story) =>
  Effect.map(allOf(story, "/objects"), (objects) =>
    objects.toReversed().map(({ type, key, properties }) => ({ type, key, properties }))
  )

const badLines = (told: ReadonlyArray<Json>) =>
  told.filter((line) => line.type === "badLine").map(({ line, message }) => [line, message])

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("An import of a CSV file", () => {
    it.effect(
      "takes each row for an object: quotes, line breaks, kinds of values, and a mark at the beginning",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const file = [
            "\ufefftype,key,name,age:number,alive:boolean,tags:json,note:at:noon",
            'Person,ada,"Lovelace, ""Ada""",36,FALSE,"[""x"",{""n"":1}]",',
            'Person,grace,"Hopper\r\nGrace",-8.5e1,true,,"a note"',
            'Person,"",,,,null,""',
            ""
          ].join("\r\n")
          const told = yield* importLines(story, file, "?format=csv")
          expect(badLines(told)).toEqual([[5, expect.stringMatching(/^\/key: .*\b500\b/)]])
          expect(told.at(-1)).toMatchObject({ type: "finished", created: 2, failed: 1, lines: 5 })
          expect(yield* objectsOf(story)).toEqual([
            {
              type: "Person",
              key: "ada",
              properties: { name: 'Lovelace, "Ada"', age: 36, alive: false, tags: ["x", { n: 1 }] }
            },
            {
              type: "Person",
              key: "grace",
              properties: { name: "Hopper\r\nGrace", age: -85, alive: true, "note:at:noon": "a note" }
            }
          ])
        })
    )

    it.effect.each([
      { what: "", file: "type,key\rI,a\rI,b\r" },
      { what: ", in quotes", file: '"type","key"\r"I","a"\r' },
      { what: ", and some in LF", file: "type,key\rI,a\nI,b\n" }
    ])("refuses a file whose lines end in CR alone$what", ({ file }) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [told] = yield* importLines(story, file, "?format=csv")
        expect(told).toMatchObject({ status: 422 })
        expect(told.detail).toEqual(naming(1, "CR", "CRLF"))
      })
    )

    it.effect(
      "takes the type and the column of the keys from the request, and leaves alone what a row does not say",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* importLines(
            story,
            "email,name,team\na@x,Ada,Blue\ng@x,Grace,",
            "?format=csv&type=Person&key=email"
          )
          const told = yield* importLines(
            story,
            "email,team\na@x,\ng@x,Red\n,Green\n",
            "?format=csv&type=Person&key=email"
          )
          expect(told.at(-1)).toMatchObject({ created: 1, updated: 1, unchanged: 1, failed: 0 })
          expect(yield* objectsOf(story)).toEqual([
            { type: "Person", key: "a@x", properties: { email: "a@x", name: "Ada", team: "Blue" } },
            { type: "Person", key: "g@x", properties: { email: "g@x", name: "Grace", team: "Red" } },
            { type: "Person", key: null, properties: { team: "Green" } }
          ])
        })
    )

    it.effect("tells each bad row with the line on which it begins, and loses no good one", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const file = [
          "key,size:number,is:boolean,more:json",
          '"one\nkey",1,true,{}',
          "two,1",
          "three,1.,,",
          "four,,yes,",
          "five,,,{",
          "six,9007199254740993,,",
          '5" nail,,,',
          '"seven"x,,,',
          '"never closed,,,',
          'eight,8,,"{""a"":1}"',
          "",
          "nine,9,,"
        ].join("\n")
        const told = yield* importLines(story, file, "?format=csv&type=Thing")
        expect(badLines(told)).toEqual([
          [4, naming(2, 4)],
          [5, expect.stringMatching(/^size: .*\b1\./)],
          [6, expect.stringMatching(/^is: .*\byes\b/)],
          [7, expect.stringMatching(/^more: .*\{/)],
          [8, expect.stringMatching(/^size: .*9007199254740993/)],
          [9, expect.any(String)],
          [10, expect.any(String)],
          [11, expect.any(String)]
        ])
        const quotes = badLines(told).flatMap(([line, message]) => (line >= 9 ? [message] : []))
        expect(new Set(quotes).size).toBe(2)
        expect((yield* objectsOf(story)).map(({ key }) => key)).toEqual(["one\nkey", "eight", "nine"])
        expect(told.at(-1)).toMatchObject({ type: "finished", created: 3, failed: 8, lines: 14 })
      })
    )

    it.effect.each<readonly [string, string, string?]>([
      ["semicolons, a mark and decimal commas", '\ufefftype;key;price:number\nTea;"a;b";1,5\nTea;c;2.5\n'],
      [
        "a first line that names the delimiter",
        "sep=;\r\ntype;key;price:number\r\nTea;a;b;1,5\r\n".replace("a;b", '"a;b"')
      ],
      ["tabs", 'type\tkey\tprice:number\nTea\t"a;b"\t1,5\n'],
      [
        "a delimiter that is given",
        'type;key,;price:number\nTea;"a;b";1,5\n'.replace("key,", "key"),
        "&delimiter=%3B"
      ]
    ])("that a spreadsheet writes with %s is understood", ([, file, query = ""]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const told = yield* importLines(story, file, `?format=csv${query}`)
        expect(told.at(-1)).toMatchObject({ type: "finished", failed: 0 })
        const [made] = yield* objectsOf(story)
        expect(made).toEqual({ type: "Tea", key: "a;b", properties: { price: 1.5 } })
      })
    )

    const sized = (sizes: ReadonlyArray<string>, delimiter: string) =>
      [["key", "size:number"], ...sizes.map((size, row) => [`${row}`.padStart(6, "0"), size])]
        .map((fields) => fields.join(delimiter))
        .join("\n")
    const sizesOf = (story: Story) =>
      Effect.map(objectsOf(story), (objects) => objects.map(({ properties }) => properties.size))

    it.effect.each([";", "\t", "|"])(
      "reads a number that may be two as its column is written, whichever comes first, with %j between fields",
      (delimiter) =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const told = yield* importLines(
            story,
            sized(["1.234", "1.234,5", "1.234.567", "1 234", "0,125", "-999.000"], delimiter),
            "?format=csv&type=Thing"
          )
          expect(told.at(-1)).toMatchObject({ type: "finished", failed: 0 })
          expect(yield* sizesOf(story)).toEqual([1_234, 1_234.5, 1_234_567, 1_234, 0.125, -999_000])
        })
    )

    it.effect("refuses a number with two meanings where its column shows both marks or none", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const both = yield* importLines(
          story,
          sized(["1,5", "2.5", "1.234", "1,234"], "\t"),
          "?format=csv&type=Thing"
        )
        expect(badLines(both)).toEqual([
          [4, naming("1.234", "1234", "1,234")],
          [5, naming("1,234", "1234", "1.234")]
        ])
        expect(yield* sizesOf(story)).toEqual([1.5, 2.5])
        const none = yield* importLines(story, sized(["1.234", "7"], ";"), "?format=csv&type=Other")
        expect(badLines(none)).toEqual([[2, naming("1.234", "--decimal")]])
        const given = yield* importLines(
          story,
          sized(["1.234", "7", "2.5"], ";"),
          "?format=csv&type=Given&decimal=comma"
        )
        expect(badLines(given)).toEqual([[4, naming("2.5", "comma")]])
        expect(yield* sizesOf(story)).toEqual([1.5, 2.5, 7, 1_234, 7])
      })
    )

    it.effect("commits rows that have one meaning while their file still comes, and waits with others", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const sender = yield* beginSending(story, "?format=csv&type=Thing")
        yield* sender.send("key\tsize:number\na\t7\nb\t8\n")
        yield* sender.toldWhen(hasCommitted(3))
        // What decides comes in a later piece of the file, and within the beginning that decides.
        yield* sender.send("c\t1.234\n")
        yield* sender.send(`${"#".repeat(200_000)}\n`)
        yield* sender.send("d\t1,5\n")
        yield* sender.end
        const told = yield* sender.toldWhen((lines) => lines.at(-1)?.type === "finished")
        expect(badLines(told)).toEqual([[5, expect.any(String)]])
        expect(yield* sizesOf(story)).toEqual([7, 8, 1_234, 1.5])
      })
    )

    it.effect("reads the numbers of a file that is sent again as it did before", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        // The comma that decides is in the first line, and the numbers with two meanings are in all others.
        const rows = Array.from(
          { length: 400 },
          (_, row) => `${row}\t${row === 0 ? "1,5" : "1.234"}\t${"x".repeat(1_000)}\n`
        )
        const first = ["key\tsize:number\ttext\n", ...rows.slice(0, 300)].join("")
        expect(first.length).toBeGreaterThan(transferLimits.numberSampleBytes)
        const sender = yield* beginSending(story, "?format=csv&type=Thing")
        yield* sender.send(first)
        const [{ importId }] = yield* sender.toldWhen(hasCommitted(100))
        yield* sender.leave
        yield* eventually(story.get(`/imports/${importId}`), (one: Json) => one.status === "interrupted")
        const told = yield* importLines(
          story,
          first + rows.slice(300).join(""),
          `?format=csv&type=Thing&resume=${importId}`
        )
        expect(told.at(-1)).toMatchObject({ type: "finished", failed: 0 })
        const sizes = yield* sizesOf(story)
        expect([sizes.length, new Set(sizes)]).toEqual([400, new Set([1.5, 1_234])])
      })
    )

    it.effect.each<readonly [string, Uint8Array, ReadonlyArray<string>]>([
      [
        ".xlsx",
        Buffer.from(
          "PK\u0003\u0004\u0014\u0000\u0006\u0000\u0008\u0000[Content_Types].xml \u00a2\n",
          "latin1"
        ),
        ["spreadsheet", ".xlsx", "CSV"]
      ],
      [
        ".ods",
        Buffer.from(
          "PK\u0003\u0004\u0014\u0000mimetypeapplication/vnd.oasis.opendocument.spreadsheet",
          "latin1"
        ),
        ["spreadsheet", ".ods", "CSV"]
      ],
      [
        ".xls",
        Buffer.concat([
          Buffer.from([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]),
          Buffer.alloc(64),
          Buffer.from("\n")
        ]),
        ["spreadsheet", ".xls", "CSV"]
      ],
      ["HTML in an .xls", Buffer.from("<html><table><tr><td>type</td></tr></table>\n"), ["HTML", "CSV"]],
      ["gzip", Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 10]), ["gzip", "unpack"]]
    ])("that is %s is refused by that name, as CSV and as JSON lines", ([, bytes, named]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        for (const format of ["csv", "jsonl"]) {
          const answer = yield* importFile(story, bytes, {}, `?format=${format}`)
          expectProblem(answer, 422)
          expect(answer.body.detail).toEqual(namingAll(named))
        }
        expect((yield* story.get("/imports")).items).toEqual([])
      })
    )

    it.effect("of UTF-16, or of bytes that are no UTF-8, is told to be saved as UTF-8", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const text = "type,key\nTea,a\n"
        for (const bytes of [
          Buffer.from(`\ufeff${text}`, "utf16le"),
          Buffer.from(`\ufeff${text}`, "utf16le").swap16(),
          Buffer.from(text, "utf16le"),
          Buffer.from(text, "utf16le").swap16()
        ]) {
          const wide = yield* importFile(story, bytes, {}, "?format=csv")
          expectProblem(wide, 422)
          expect(wide.body.detail).toEqual(naming("UTF-16", "UTF-8"))
        }
        const told = yield* importLines(
          story,
          Buffer.from("type,key\nTea,M\xfcller\nTea,b\n", "latin1"),
          "?format=csv"
        )
        expect(badLines(told)).toEqual([[2, naming("UTF-8")]])
        expect((yield* objectsOf(story)).map(({ key }) => key)).toEqual(["b"])
      })
    )

    it.effect.each<readonly [string, string, string, ReadonlyArray<Named>, string, string?]>([
      ["is empty", "", "&type=Person", [], "key\n"],
      ["names no type", "key,name\n", "", ["type", "key, name"], "key,name\n", "&type=Person"],
      ["names a column twice", "key,a,a:json\n", "&type=Person", [1, "a"], "key,a,b:json\n"],
      ["leaves a column without a name", "key,,a\n", "&type=Person", [1, 2], "key,b,a\n"],
      ["has no such column of keys", "id,a\n", "&type=Person&key=email", [1, "email", "id, a"], "email,a\n"],
      ["begins with a broken line", 'a"b,c\n', "&type=Person", [1], '"a""b",c\n']
    ])("that %s is refused before anything is written", ([, file, query, named, mended, queryMended]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const rows = yield* countRows(story)
        const answer = yield* importFile(story, file, {}, `?format=csv${query}`)
        expectProblem(answer, 422)
        expect(answer.body.detail).toEqual(namingAll(named))
        expect(yield* countRows(story)).toEqual(rows)
        expect((yield* story.get("/imports")).items).toEqual([])
        const told = yield* importLines(story, mended, `?format=csv${queryMended ?? query}`)
        expect(told.at(-1)).toMatchObject({ type: "finished", lines: 0, failed: 0 })
      })
    )

    it.effect("is not told its type where its lines say it themselves", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        expectProblem(yield* importFile(story, "", {}, "?format=jsonl&type=Person"), 422, "type")
        expectProblem(yield* importFile(story, "", {}, "?format=csv&type=not a type"), 422, "type")
      })
    )
  })
})
