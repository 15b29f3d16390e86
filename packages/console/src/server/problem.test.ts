/**
 * Every "no" of the server is a sentence a person can act on.
 */
import { describe, expect, it } from "@effect/vitest"
import { Conflict } from "@tropism/api/problems"
import { expectOneSentencePerKind } from "../../testing/sentence-kinds.ts"
import {
  faultAt,
  isBeside,
  failureCode,
  failureSentence,
  isLeftOpen,
  isMissing,
  isUnauthorized,
  Problem,
  type ProblemDocument,
  Unreachable
} from "./problem.ts"

describe("a refusal", () => {
  it("has a sentence of its own for every reason that the contract names", () => {
    const sentences = Conflict.fields.reason.literals.map((reason) =>
      failureSentence(new Problem({ status: 409, document: { title: "A title", reason } }))
    )
    expect(new Set(sentences).size).toBe(sentences.length)
    for (const sentence of sentences) expect(sentence).toMatch(/^[A-Z].*\.$/)
  })

  it("is told in the server's own words where it has any, with nothing hidden in them", () => {
    const sentence = (status: number, document: ProblemDocument) =>
      failureSentence(new Problem({ status, document }))
    expect(
      sentence(409, { reason: "outdated", detail: "It would write licence, which is\u202e ISC now" })
    ).toBe("It would write licence, which isU+202E ISC now.")
    expect(sentence(403, { title: "Not allowed", detail: "Ada may read, and no more" })).toBe(
      "Ada may read, and no more."
    )
    // What failed in the server says little by itself, so a sentence of the console comes first.
    expect(sentence(500, { detail: "Request 7" })).toMatch(/^\S.*\. Request 7\.$/)
  })

  it("names each fault of the input once", () => {
    const errors = [{ pointer: "/reason", message: "too long" }]
    const document = { title: "The form is unfit", errors }
    expect(failureSentence(new Problem({ status: 422, document }))).toBe(
      "The form is unfit. Reason: too long."
    )
    expect(
      failureSentence(new Problem({ status: 422, document: { ...document, detail: "/reason: too long" } }))
    ).toBe("Reason: too long.")
    expect(
      failureSentence(
        new Problem({ status: 422, document: { ...document, detail: "The reason is too long" } })
      )
    ).toBe("The reason is too long.")
  })

  it("says where a fault is in words, and names that people gave as they are", () => {
    const sentence = (pointer: string) =>
      failureSentence(
        new Problem({
          status: 400,
          document: { detail: `${pointer}: too long`, errors: [{ pointer, message: "too long" }] }
        })
      )
    // A place in a list is counted from one.
    expect(sentence("/reactionConfig/objectTypes/0")).toMatch(
      /^Reaction config › object types › \D*1: too long\.$/
    )
    expect(sentence("/properties/licenceKey/0")).toBe("Properties › licenceKey › 0: too long.")
    expect(sentence("maxTokens")).toBe("Max tokens: too long.")
  })

  it("stands at the field that it is about, or that holds it, and a name that is taken at its own", () => {
    const errors = [
      { pointer: "/tools/2", message: "no tool" },
      { pointer: "/model/name", message: "too long" }
    ]
    const unfit = new Problem({ status: 422, document: { errors } })
    expect(faultAt(unfit, "/tools")).toBe("2: no tool.")
    expect(faultAt(unfit, "/model/name")).toBe("too long.")
    expect(faultAt(unfit, "/model", ["/model/name"])).toBeUndefined()
    expect(faultAt(unfit, "/tool")).toBeUndefined()
    expect([isBeside(unfit, ["/tools", "/model"]), isBeside(unfit, ["/tools"])]).toEqual([true, false])
    const taken = new Problem({ status: 409, document: { reason: "keyTaken", detail: "There is an ada" } })
    expect(faultAt(taken, "/key")).toBe("There is an ada.")
    expect(isBeside(taken, ["/key"])).toBe(true)
    expect(isBeside(new Problem({ status: 503, document: {} }), ["/key"])).toBe(false)
  })

  it("is understood without a problem document, as a proxy sends it", () => {
    const sentence = (status: number) => failureSentence(new Problem({ status, document: {} }))
    expectOneSentencePerKind({
      unavailable: [sentence(503)],
      forbidden: [sentence(403)],
      gone: [sentence(404)],
      unknown: [sentence(418)]
    })
    // Of a status without a sentence of its own, the number is all that is known.
    expect([sentence(503).includes("503"), sentence(418).includes("418")]).toEqual([false, true])
  })

  it("is told apart from no answer and from an answer nobody understands", () => {
    const cause = new TypeError("fetch failed")
    const failures = {
      noAnswer: new Unreachable({ cause }),
      maybeDone: new Unreachable({ cause, isOpen: true }),
      notUnderstood: new TypeError("x is undefined")
    }
    expectOneSentencePerKind({
      noAnswer: [failureSentence(failures.noAnswer)],
      maybeDone: [failureSentence(failures.maybeDone)],
      notUnderstood: [failureSentence(failures.notUnderstood), failureSentence(cause)]
    })
    expect(Object.values(failures).map(isLeftOpen)).toEqual([false, true, false])
    expect(Object.values(failures).map(failureCode)).toEqual([
      "unreachable",
      "outcomeUnknown",
      "notUnderstood"
    ])
    const unavailable = { type: "/problems/unavailable" }
    expect(failureCode(new Problem({ status: 503, document: unavailable }))).toBe("unavailable")
    expect(failureCode(new Problem({ status: 409, document: { ...unavailable, reason: "state" } }))).toBe(
      "state"
    )
    expect(failureCode(new Problem({ status: 502, document: {} }))).toBe("502")
  })

  it("says whether it is about the session or about what is gone", () => {
    expect(isUnauthorized(new Problem({ status: 401, document: {} }))).toBe(true)
    expect(isUnauthorized(new Problem({ status: 403, document: {} }))).toBe(false)
    expect(isMissing(new Problem({ status: 404, document: {} }))).toBe(true)
  })
})
