/**
 * A way to a server and into one project of it: the client, and which project is meant.
 *
 * Every failed request leaves here as one sentence for a person. A command first
 * asks something that changes nothing, which finds out whether there is a server;
 * what it asks then is made again where that has no second effect. The project is
 * the one that was named or the only one; among several nothing is guessed.
 */
import type { Page } from "@tropism/api/page"
import type { Project } from "@tropism/api/system-api"
import { type ApiClient, Client } from "@tropism/client/client"
import type { Connection } from "@tropism/client/connection"
import { Effect, Option, type FileSystem, type Path } from "effect"
import type { GlobalFlag } from "effect/cli"
import { Failure, failure, requestFailure } from "./failure.ts"
import { limits } from "./limits.ts"
import { ProjectFlag, readConnection } from "./settings.ts"
import { whenReady } from "./waiting-for-server.ts"

export interface Access {
  readonly client: ApiClient
  readonly connection: Connection
  readonly project: Project
  /** The parameters that every request in the project has. */
  readonly params: { readonly projectId: Project["id"] }
}

export type AccessNeeds =
  | GlobalFlag.Setting.Identifier<"url">
  | GlobalFlag.Setting.Identifier<"token">
  | GlobalFlag.Setting.Identifier<"project">
  | GlobalFlag.Setting.Identifier<"json">
  | GlobalFlag.Setting.Identifier<"quiet">
  | FileSystem.FileSystem
  | Path.Path

/** Runs a command in the chosen project; a server that is not ready yet, or busy, is waited for. */
export const inProject = <A, E, R>(
  body: (access: Access) => Effect.Effect<A, E, R>
): Effect.Effect<A, Failure, R | AccessNeeds> =>
  Effect.gen(function* () {
    const connection = yield* readConnection
    const projects = yield* askedFirst(connection, readProjects)
    const project = yield* chooseProject(projects, yield* ProjectFlag)
    return yield* withClient(connection, (client) => body(accessTo(client, connection, project)))
  })

/** Runs a command of the whole server, which is waited for in the same way. */
export const onServer = <A, E, R>(
  body: (client: ApiClient) => Effect.Effect<A, E, R>
): Effect.Effect<A, Failure, Exclude<R, Client> | AccessNeeds> =>
  Effect.gen(function* () {
    const connection = yield* readConnection
    yield* askedFirst(connection, (client) => client.projects.list({ query: { limit: 1 } }))
    return yield* withClient(connection, body)
  })

/** The question with which a command begins: that there is no server is told at once. */
const askedFirst = <A, E>(connection: Connection, question: (client: ApiClient) => Effect.Effect<A, E>) =>
  withClient(connection, (client) => whenReady(connection.url, question(client)), 0)

export const accessTo = (client: ApiClient, connection: Connection, project: Project): Access => ({
  client,
  connection,
  project,
  params: { projectId: project.id }
})

/** Runs requests, each made again up to so many times, and turns what goes wrong with them into sentences. */
export const withClient = <A, E, R>(
  connection: Connection,
  body: (client: ApiClient) => Effect.Effect<A, E, R>,
  retries: number = limits.requestRetries
): Effect.Effect<A, Failure, Exclude<R, Client>> =>
  Effect.flatMap(Client, body).pipe(
    Effect.mapError((error) => requestFailure(error, connection.url)),
    Effect.provide(Client.layer({ ...connection, retries }))
  )

/** All projects that the token reaches. */
const readProjects = (client: ApiClient) =>
  Effect.map(
    readPages((query) => client.projects.list({ query }), Infinity),
    ({ items }) => items
  )

const chooseProject = (projects: ReadonlyArray<Project>, wanted: Option.Option<string>) =>
  Effect.gen(function* () {
    if (Option.isSome(wanted)) {
      const found = projects.filter((project) => project.id === wanted.value || project.name === wanted.value)
      if (found.length === 1 && found[0]) return found[0]
      return yield* failure(
        found.length > 1
          ? `${found.length} projects have the name "${wanted.value}". Use the id:${list(found)}`
          : `Project not found: "${wanted.value}". ${projects.length === 0 ? noProject : `Available:${list(projects)}`}`
      )
    }
    if (projects.length === 1 && projects[0]) return projects[0]
    return yield* failure(
      projects.length === 0
        ? noProject
        : `There are ${projects.length} projects. Choose one with --project:${list(projects)}`
    )
  })

const noProject = `The server has no projects yet. Create one with "tropism projects create NAME".`

const list = (projects: ReadonlyArray<Project>): string => {
  const shown = projects.slice(0, 20).map((project) => `\n  ${project.id}  ${project.name}`)
  return (
    shown.join("") + (projects.length > shown.length ? `\n  and ${projects.length - shown.length} more` : "")
  )
}

/**
 * Reads a list page by page until it has so many records, and says whether there are more.
 *
 * **Details** Of infinitely many it has all that there are.
 */
export const readPages = <A, E, R>(
  read: (query: { readonly cursor?: string; readonly limit: number }) => Effect.Effect<Page<A>, E, R>,
  count: number
): Effect.Effect<{ readonly items: ReadonlyArray<A>; readonly hasMore: boolean }, E, R> =>
  Effect.gen(function* () {
    const items: Array<A> = []
    let cursor: string | null = null
    for (let page = 0; page < limits.pagesRead; page++) {
      const wanted = Math.min(count - items.length, 200)
      const answer: Page<A> = yield* read(cursor === null ? { limit: wanted } : { cursor, limit: wanted })
      items.push(...answer.items)
      cursor = answer.nextCursor
      if (cursor === null || items.length >= count) return { items, hasMore: cursor !== null }
    }
    return yield* Effect.die(endless)
  })

/** Nobody has so much: the server goes on telling the same. */
const endless = failure(`The server's list has no end: ${limits.pagesRead} pages of it were read.`)
