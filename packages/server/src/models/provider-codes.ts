/**
 * Classifies a refusal by the provider's own error codes, whatever its HTTP status.
 *
 * Textual codes mean the same at several providers. Numeric codes are read only in the shape of the provider that defines them. Sources, as
 * of 2026-11: docs.bigmodel.cn and docs.z.ai (api-code), platform.minimax.io (errorcode), cloud.baidu.com/doc/qianfan-api and
 * doc/WENXINWORKSHOP (错误码), help.aliyun.com/model-studio (error-code).
 */

export type Fields = Readonly<Record<string, unknown>>

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The kinds of refusals, which decide whether to wait, to shorten the prompt or to fail. */
export type RefusalKind = "rateLimit" | "quota" | "tooLong" | "away" | "authentication" | "refused"

/** The HTTP status that other providers use for the same. */
export const statusOfKind: Readonly<Record<RefusalKind, number>> = {
  rateLimit: 429,
  quota: 402,
  tooLong: 400,
  away: 503,
  authentication: 401,
  refused: 400
}

/** Textual codes, without capitals and separators: OpenAI, Groq, Azure, Google, AWS, DashScope, Baidu, Moonshot. */
const namedCodes: ReadonlyArray<readonly [RefusalKind, RegExp]> = [
  [
    "rateLimit",
    /^(?:[a-z]{3,12}?ratelimit|ratelimit)(?:ed|exceeded|reached|reachederror|error|ing)?$|^(?:resourceexhausted|capacityexceeded|toomanyrequests(?:error|exception)?|(?:request)?throttl(?:ed|ing)(?:error|exception|ratequota|allocationquota|burstrate)?|requestlimitexceeded|tokenlimitexceeded|limit(?:requests|burstrate))$/
  ],
  [
    "quota",
    /^(?:arrearage|(?:prepaid|postpaid)billoverdue|commoditynotpurchased|allocationquotafreetieronly|(?:billing)?insufficient(?:balance|credits?|quota)|billinghardlimitreached|accountoverdue(?:error)?|exceededcurrentquota(?:error)?)$/
  ],
  [
    "away",
    /^(?:serviceunavailable(?:error|exception)?|(?:engine|model|server)?overloaded(?:error|exception)?|serverbusy)$/
  ],
  ["tooLong", /^(?:contextlengthexceeded|exceedcontextsizeerror|(?:tokens|characters)toolong)$/]
]

const table = (
  kinds: Partial<Readonly<Record<RefusalKind, ReadonlyArray<number>>>>
): ReadonlyMap<number, RefusalKind> =>
  new Map(
    Object.entries(kinds).flatMap(([kind, codes]) =>
      codes.map((code) => [code, kind as RefusalKind] as const)
    )
  )

/** `error.code` of Zhipu (GLM), as text or as a number. */
const zhipu = table({
  rateLimit: [1302, 1303, 1304, 1305, 1308, 1310, 1312],
  quota: [1113, 1309],
  tooLong: [1261],
  away: [1120, 1230, 1234],
  authentication: [1000, 1001, 1002, 1003, 1004, 1110, 1111, 1112, 1121]
})

/** `base_resp.status_code` of MiniMax, also in answers with 200. */
const miniMax = table({
  rateLimit: [1002, 1039, 1041],
  quota: [1008],
  away: [1000, 1001, 1024, 1033],
  authentication: [1004, 2049]
})

/** `error_code` of Baidu, or `code` beside `msg`, also in answers with 200. */
const baidu = table({
  rateLimit: [4, 18, 336501, 336502],
  quota: [17, 19],
  tooLong: [336103],
  away: [1, 2, 336000, 336100],
  authentication: [6, 13, 14, 15, 110, 111]
})

/** The kind of a refusal by its own codes; undefined without a known code. */
export const kindOfRefusal = (body: unknown, depth = 5): RefusalKind | undefined => {
  if (depth === 0) return undefined
  if (Array.isArray(body)) return firstOf(body.slice(0, 10), (each) => kindOfRefusal(each, depth - 1))
  if (!isFields(body)) return undefined
  const { __type, base_resp, code, details, error, error_code, errors, msg, reason, status, type } = body
  return (
    kindOfNumber(isFields(base_resp) ? base_resp["status_code"] : undefined, miniMax) ??
    kindOfNumber(error_code, baidu) ??
    (typeof msg === "string" && baidu.has(Number(code)) ? baidu.get(Number(code)) : undefined) ??
    (/^1\d{3}$/.test(String(code)) ? zhipu.get(Number(code)) : undefined) ??
    firstOf(
      [code, type, status, reason, typeof __type === "string" ? __type.split("#").at(-1) : undefined],
      kindOfName
    ) ??
    firstOf([error, errors, details], (inner) => kindOfRefusal(inner, depth - 1))
  )
}

/** A number in a shape of one provider: an unlisted code is a refusal, and zero is none. */
const kindOfNumber = (code: unknown, codes: ReadonlyMap<number, RefusalKind>): RefusalKind | undefined => {
  const number = typeof code === "string" && code !== "" ? Number(code) : code
  return typeof number !== "number" || Number.isNaN(number) || number === 0
    ? undefined
    : (codes.get(number) ?? "refused")
}

/** The kind of a textual code. */
export const kindOfName = (name: unknown): RefusalKind | undefined => {
  if (typeof name !== "string") return undefined
  const letters = name.toLowerCase().replace(/[^a-z]/g, "")
  return namedCodes.find(([, pattern]) => pattern.test(letters))?.[0]
}

const firstOf = <A, B>(values: ReadonlyArray<A>, find: (value: A) => B | undefined): B | undefined => {
  for (const value of values) {
    const found = find(value)
    if (found !== undefined) return found
  }
  return undefined
}
