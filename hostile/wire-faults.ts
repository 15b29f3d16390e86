/**
 * What no HTTP client would send, byte by byte, and what is too much of anything.
 */
import { connect } from "node:net"
import { gzipSync } from "node:zlib"
import { furnished } from "./furnishing.ts"
import type { Target } from "./target.ts"

/** How long the server may take to answer, or to close, a connection that sends nonsense. */
const connectionTimeoutMs = 30_000

export const sendNumbers = async (target: Target): Promise<void> => {
  const { agentId, path } = await furnished(target, "Wire")
  await sendLarge(target, path, agentId)
  await sendBytes(target, path)
}

/** Values at and beyond each bound, at each door that takes JSON. */
const sendLarge = async ({ findings, send }: Target, path: string, agentId: string) => {
  const values: ReadonlyArray<readonly [string, string]> = [
    ["depth 63", nested(63)],
    ["depth 65", nested(65)],
    ["depth 100,000", nested(100_000)],
    ["lists 100,000 deep", `${"[".repeat(100_000)}${"]".repeat(100_000)}`],
    [
      "100,000 keys",
      JSON.stringify(Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`k${at}`, at])))
    ],
    ["2^53+1", "9007199254740993"],
    ["1e400", "1e400"],
    ["10^5 digits", "9".repeat(100_000)],
    ["NUL", `"\\u0000"`],
    ["a lone surrogate", `"\\ud800"`],
    ["__proto__", `{"__proto__":{"admin":true}}`],
    ["constructor", `{"constructor":{"prototype":{"admin":true}}}`]
  ]
  const doors: ReadonlyArray<readonly [string, (value: string) => string]> = [
    ["/objects", (value) => `{"type":"Thing","properties":{"a":${value}}}`],
    [`/agents/${agentId}/trigger`, (value) => `{"input":{"a":${value}}}`],
    [
      "/mcp",
      (value) =>
        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_object","arguments":{"type":"Thing","properties":{"a":${value}}}}}`
    ],
    [
      "/v1/chat/completions",
      (value) => `{"model":"listener","messages":[{"role":"user","content":"x"}],"metadata":{"a":${value}}}`
    ],
    ["/chat", (value) => `{"agentId":"${agentId}","message":${value}}`]
  ]
  for (const [name, value] of values)
    for (const [door, bodyOf] of doors) {
      const { body, status } = await send({
        method: "POST",
        path: path + door,
        body: bodyOf(value),
        headers: { accept: "application/json, text/event-stream" },
        repeat: name
      })
      const isKept = status < 300 && body?.error === undefined && body?.result?.isError !== true
      if (isKept && name !== "depth 63" && !door.startsWith("/v1"))
        findings.add("kept though it cannot be", `${name} at ${door}: ${status} ${JSON.stringify(body)}`, "")
    }
  const zeros = new Uint8Array(100_000_000)
  for (const [encoding, body] of [
    ["identity", zeros],
    ["gzip", gzipSync(zeros)]
  ] as const)
    for (const [door] of doors) {
      const { status } = await send({
        method: "POST",
        path: path + door,
        body,
        headers: { "content-encoding": encoding },
        repeat: `100 MB, ${encoding}`
      })
      if (status < 400) findings.add("100 MB were taken", `${door} answered ${status}`, encoding)
    }
}

/** Objects inside objects. */
const nested = (depth: number): string => `${`{"a":`.repeat(depth - 1)}1${"}".repeat(depth - 1)}`

/** Messages that are no HTTP, or hardly any. */
const messagesTo = (
  server: Target["server"],
  path: string
): ReadonlyArray<readonly [string, string | Buffer]> => {
  const { hostname, port } = new URL(server.url)
  const head = (line: string, ...headers: ReadonlyArray<string>) =>
    [
      line,
      `Host: ${hostname}:${port}`,
      `Authorization: Bearer ${server.token}`,
      "Connection: close",
      ...headers,
      "",
      ""
    ].join("\r\n")
  const objects = `${path}/objects`
  const json = "Content-Type: application/json"
  const messages: ReadonlyArray<readonly [string, string | Buffer]> = [
    ["nonsense", "\u0000\u0001\u0002\r\n\r\n"],
    ["TLS", Buffer.from("16030100750100007103", "hex")],
    ["HTTP/0.9", "GET /health\r\n\r\n"],
    ["HTTP/2's opening", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["no host", "GET /health HTTP/1.1\r\nConnection: close\r\n\r\n"],
    ["two lengths", head(`POST ${objects} HTTP/1.1`, json, "Content-Length: 2", "Content-Length: 3") + "{}"],
    ["a negative length", head(`POST ${objects} HTTP/1.1`, json, "Content-Length: -1")],
    ["a length beyond all", head(`POST ${objects} HTTP/1.1`, json, "Content-Length: 99999999999999999999")],
    [
      "a length and chunks",
      head(`POST ${objects} HTTP/1.1`, json, "Content-Length: 2", "Transfer-Encoding: chunked") + "0\r\n\r\n"
    ],
    [
      "chunks without a size",
      head(`POST ${objects} HTTP/1.1`, json, "Transfer-Encoding: chunked") + "zz\r\n{}\r\n0\r\n\r\n"
    ],
    ["a line of 100,000 bytes", head(`GET /${"x".repeat(100_000)} HTTP/1.1`)],
    ["a header of 100,000 bytes", head("GET /health HTTP/1.1", `X-Long: ${"x".repeat(100_000)}`)],
    [
      "10,000 headers",
      head("GET /health HTTP/1.1", ...Array.from({ length: 10_000 }, (_, at) => `X-${at}: 1`))
    ],
    ["bytes beyond ASCII in an address", Buffer.from(head(`GET ${objects}/\u00ff\u00fe HTTP/1.1`), "latin1")],
    [
      "bytes beyond ASCII in a query",
      Buffer.from(head(`GET ${objects}?query=\u00ff\u00c3 HTTP/1.1`), "latin1")
    ],
    [
      "bytes beyond ASCII in a header",
      Buffer.from(head(`GET ${objects} HTTP/1.1`, "If-Match: \u00ff\u00fe"), "latin1")
    ]
  ]
  return [...messages, ...addressesTo(head, objects)]
}

/** Addresses and methods that no client sends. */
const addressesTo = (
  head: (line: string, ...headers: ReadonlyArray<string>) => string,
  objects: string
): ReadonlyArray<readonly [string, string]> => {
  const json = "Content-Type: application/json"
  return [
    ["a lone percent sign", head(`GET ${objects}/% HTTP/1.1`)],
    ["a percent sign that is no UTF-8", head(`GET ${objects}/%ff%fe HTTP/1.1`)],
    ["NUL in an address", head(`GET ${objects}/%00 HTTP/1.1`)],
    ["NUL in a query", head(`GET ${objects}?key=%00 HTTP/1.1`)],
    ["a surrogate in a query", head(`GET ${objects}?key=%ed%a0%80 HTTP/1.1`)],
    ["a lone percent sign in a query", head(`GET ${objects}?where=%&query=%zz HTTP/1.1`)],
    ["steps out of the root", head("GET /../../etc/passwd HTTP/1.1")],
    ["a whole address", head("GET http://evil.example/api/me HTTP/1.1")],
    ["an address that is none", head("GET http://[ HTTP/1.1")],
    ["a star", head("OPTIONS * HTTP/1.1")],
    ["a method that does not exist", head(`FROB ${objects} HTTP/1.1`)],
    ["CONNECT", head("CONNECT 127.0.0.1:22 HTTP/1.1")],
    ["TRACE", head(`TRACE ${objects} HTTP/1.1`)],
    ["an upgrade", head("GET /mcp HTTP/1.1", "Upgrade: websocket", "Sec-WebSocket-Key: x")],
    [
      "an expectation",
      head(`POST ${objects} HTTP/1.1`, json, "Expect: 200-maybe", "Content-Length: 2") + "{}"
    ],
    ["a host that is none", "GET /health HTTP/1.1\r\nHost: [::\r\nConnection: close\r\n\r\n"],
    ["a body that breaks off", head(`POST ${objects} HTTP/1.1`, json, "Content-Length: 100") + "{"]
  ]
}

const sendBytes = async ({ findings, server }: Target, path: string) => {
  const { hostname, port } = new URL(server.url)
  for (const [name, bytes] of messagesTo(server, path)) {
    findings.count("requests")
    const answer = await answerTo(hostname, Number(port), bytes, name.includes("breaks off"))
    const status = /^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1]
    findings.count(status === undefined ? "answered by closing" : `answered ${status[0]}xx`)
    if (answer === "timeout" || Number(status) >= 500)
      findings.add(`over the wire: ${name}`, answer.slice(0, 400), String(bytes).slice(0, 200))
    const { ok } = await fetch(`${server.url}/health`)
    if (!ok) findings.add(`dead after: ${name}`, answer, "")
  }
}

/** All that came back until the server closed; `goes` says that the client leaves before it. */
const answerTo = (host: string, port: number, bytes: string | Buffer, goes: boolean): Promise<string> =>
  new Promise((resolve) => {
    let text = ""
    const socket = connect({ host, port, allowHalfOpen: true }, () => {
      socket.write(bytes, () => (goes ? socket.destroy() : socket.end()))
    })
    socket.setTimeout(connectionTimeoutMs, () => {
      text = text === "" ? "timeout" : text
      socket.destroy()
    })
    socket.on("data", (part) => (text += part.toString("latin1")))
    socket.on("end", () => socket.destroy())
    socket.on("error", () => undefined)
    socket.on("close", () => resolve(text))
  })
