/**
 * What somebody changed in the form of a foreign server, field by field, and what of it is sent.
 *
 * Pure. The fields that nobody touched say what the server is by now, and are not
 * sent. Each that was touched remembers what it said before, which tells whether
 * somebody else has changed it meanwhile.
 */
import type { McpServer, McpServerPatch } from "@tropism/domain/mcp-server"
import {
  authorizationIn,
  draftOf,
  hasHiddenArguments,
  inputOf,
  type ServerDefinition,
  type ServerDraft
} from "./server-words.ts"

type Field = keyof ServerDraft

/** The fields that were touched: what each said before, and what it says now. */
export interface Written {
  readonly from: Partial<ServerDraft>
  readonly to: Partial<ServerDraft>
}

export const nothingWritten: Written = { from: {}, to: {} }

/** What a field is called, on the form and in what is told of it. */
export const fieldLabels: Readonly<Record<Field, string>> = {
  name: "Name",
  type: "Connection",
  url: "Address",
  headers: "Headers",
  signIn: "Signing in",
  clientId: "Client id",
  clientSecret: "Client secret",
  scopes: "Scopes",
  command: "Program",
  args: "Arguments",
  env: "Environment",
  allowedTools: "Allowed tools",
  allowedEvents: "Allowed events",
  isUntrusted: "Treat tool results as untrusted"
}

const fields = Object.keys(fieldLabels) as ReadonlyArray<Field>

/** The fields by which a server is reached, by how it is. */
const transportFields: Readonly<Record<ServerDraft["type"], ReadonlyArray<Field>>> = {
  http: ["type", "url", "headers"],
  stdio: ["type", "command", "args", "env"]
}

const signInFields: ReadonlyArray<Field> = ["signIn", "clientId", "clientSecret", "scopes"]

const only = (draft: Partial<ServerDraft>, isWanted: (field: Field) => boolean): Partial<ServerDraft> =>
  Object.fromEntries(fields.flatMap((field) => (isWanted(field) ? [[field, draft[field]]] : [])))

/** The form: what was written, and else what the server is by now. */
export const shownOf = (written: Written, server: ServerDefinition | undefined): ServerDraft => ({
  ...draftOf(server),
  ...written.to
})

/** Some fields are written; one that says again what it said before counts as untouched. */
export const writeOver = (
  before: Written,
  server: ServerDefinition | undefined,
  changes: Partial<ServerDraft>
): Written => {
  const from = { ...only(draftOf(server), (field) => field in changes), ...before.from }
  const to = { ...before.to, ...changes }
  const isTouched = (field: Field) => field in to && to[field] !== from[field]
  return { from: only(from, isTouched), to: only(to, isTouched) }
}

/** The touched fields that somebody else has changed meanwhile, and not to the same. */
export const movedFields = (written: Written, server: ServerDefinition): ReadonlyArray<Field> => {
  const now = draftOf(server)
  return fields.filter(
    (field) => field in written.to && now[field] !== written.from[field] && now[field] !== written.to[field]
  )
}

/** What was written, once it was read what the fields say by now. */
export const keepWritten = ({ to }: Written, server: ServerDefinition): Written =>
  writeOver(nothingWritten, server, to)

/** The touched fields as a change of the server as it is by now; how it is reached goes as a whole. */
export const patchOf = (written: Written, server: ServerDefinition): McpServerPatch => {
  const now = draftOf(server)
  const shown = shownOf(written, server)
  const { allowedEvents, allowedTools, name, transport, untrusted } = inputOf(shown, server.transport)
  const isChanged = (field: Field) => shown[field] !== now[field]
  return {
    ...(isChanged("name") && { name }),
    ...(transportFields[shown.type].some(isChanged) && { transport }),
    // Nothing of it holds for a program.
    ...((signInFields.some(isChanged) || (isChanged("type") && server.authorization !== undefined)) && {
      authorization: authorizationIn(shown)
    }),
    ...(isChanged("allowedTools") && { allowedTools }),
    ...(isChanged("allowedEvents") && { allowedEvents }),
    ...(isChanged("isUntrusted") && { untrusted })
  }
}

/** Why the arguments as they are written cannot be sent. */
export const argumentsFault = (
  { to }: Written,
  server: Pick<McpServer, "transport"> | undefined
): string | undefined =>
  to.args !== undefined && to.type === undefined && server !== undefined && hasHiddenArguments(server)
    ? "An argument is empty or contains a line break. Use the API to change the arguments."
    : undefined

/** What a field says by now, in a sentence. */
export const nowSentence = (field: Field, server: ServerDefinition): string => {
  const value = draftOf(server)[field]
  const words = typeof value === "boolean" ? (value ? "yes" : "no") : value === "" ? "nothing" : value
  if (field === "signIn") return `${fieldLabels[field]}: ${signInWords[draftOf(server).signIn]}`
  return `${fieldLabels[field]}: ${field === "type" ? reachedWords[value === "http" ? "http" : "stdio"] : words}`
}

/** Who signs in to a server that wants OAuth. */
export const signInWords: Readonly<Record<ServerDraft["signIn"], string>> = {
  "": "Chosen by the server",
  server: "An admin, for every run",
  member: "Each member, for their own runs"
}

/** How a server is reached, in words. */
export const reachedWords: Readonly<Record<ServerDraft["type"], string>> = {
  http: "URL (Streamable HTTP)",
  stdio: "Program on the server machine (stdio)"
}
