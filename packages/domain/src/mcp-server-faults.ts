/**
 * What is wrong with the definition of a foreign MCP server, beyond the shape of its fields.
 *
 * A secret that was written into a definition would be read by everybody who may
 * read the definition: where one is likely, a reference is demanded.
 */
import type { JsonFault } from "./json.ts"
import { pointerStep } from "./json.ts"
import type { McpServerConfig, McpTransport, OAuthAuthorization, SecretOrText } from "./mcp-server.ts"
import { secretPrefix } from "./mcp-server.ts"
import { builtInServers, clientServer } from "./tool-pattern.ts"

/** Names that are taken by servers of this program, now or later. */
const reserved: ReadonlyArray<string> = [...builtInServers, clientServer, "tropism"]

const secretName =
  /authori[sz]ation|cookie|secret|token|passw|credential|api-?_?key|private-?_?key|access-?_?key/i

/** The first thing that cannot be right, with its place. */
export const findMcpServerFault = ({
  authorization,
  name,
  transport
}: McpServerConfig): JsonFault | undefined => {
  if (reserved.includes(name.toLowerCase()))
    return { pointer: "/name", message: `${name} is the name of one of the server's own: choose another` }
  if (transport.type === "stdio")
    return authorization
      ? { pointer: "/authorization", message: "OAuth is for a server at an address, not for a program" }
      : findLiteral("/transport/env", transport.env)
  return (
    findAddressFault(transport.url) ??
    findLiteral("/transport/headers", transport.headers) ??
    (authorization && findSignInFault(authorization, transport))
  )
}

const findSignInFault = (
  { clientId, clientSecret }: OAuthAuthorization,
  { headers, url }: Extract<McpTransport, { readonly type: "http" }>
): JsonFault | undefined => {
  if (Object.keys(headers ?? {}).some((name) => /^authorization$/i.test(name)))
    return {
      pointer: "/transport/headers",
      message: "A server with authorization has its token in the header Authorization: leave the header out"
    }
  if (clientSecret && !clientId)
    return { pointer: "/authorization/clientSecret", message: "A client secret belongs to a clientId" }
  return isSecureAddress(url)
    ? undefined
    : {
        pointer: "/transport/url",
        message: "A token is sent over https, or to this machine: the address begins with https://"
      }
}

/** Whether nobody on the way can read what is sent to an address. */
export const isSecureAddress = (address: string): boolean => {
  const url = URL.parse(address)
  if (url === null) return false
  if (url.protocol === "https:") return true
  const isLoopback = /^(?:localhost|.*\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname)
  return url.protocol === "http:" && isLoopback
}

const findLiteral = (
  pointer: string,
  values: Readonly<Record<string, SecretOrText>> | null | undefined
): JsonFault | undefined => {
  const name = Object.entries(values ?? {}).find(
    ([key, value]) => typeof value === "string" && value !== "" && secretName.test(key)
  )?.[0]
  return name === undefined
    ? undefined
    : {
        pointer: `${pointer}${pointerStep(name)}`,
        message: `${name} looks like a secret, which no definition holds: set an environment variable of the server and name it, {"secret": "${secretPrefix}…"}`
      }
}

const findAddressFault = (address: string): JsonFault | undefined => {
  const pointer = "/transport/url"
  if (!URL.canParse(address)) return { pointer, message: "This is not an address" }
  const url = new URL(address)
  if (url.username !== "" || url.password !== "")
    return { pointer, message: "An address holds no credentials: send them in a header that names a secret" }
  if (url.hash !== "") return { pointer, message: "An address of a server has no fragment" }
  const parameter = [...url.searchParams.keys()].find((key) => secretName.test(key) || /^key$/i.test(key))
  return parameter === undefined
    ? undefined
    : {
        pointer,
        message: `${parameter} looks like a secret, which no address holds: send it in a header that names a secret`
      }
}
