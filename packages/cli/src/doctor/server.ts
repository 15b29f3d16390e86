/**
 * The server: whether it answers or its port is free, whether it takes the token, and what its projects need.
 */
import type { Project } from "@tropism/api/system-api"
import type { ApiClient } from "@tropism/client/client"
import type { Connection } from "@tropism/client/connection"
import type { ProjectHealth } from "@tropism/domain/health"
import { tryListening } from "@tropism/server/http/listener"
import { Effect, Option } from "effect"
import { withClient } from "../access.ts"
import { limits } from "../limits.ts"
import { printable } from "../terminal/text.ts"
import { addressOf, type Environment, readConnection, UrlFlag } from "../settings.ts"
import { fault, type Finding, ok, warn } from "@tropism/domain/finding"

const answersAt = (url: string) =>
  Effect.tryPromise(() => fetch(`${url}/ready`, { signal: AbortSignal.timeout(limits.doctorAnswerMs) })).pipe(
    Effect.map((answer) => ({
      status: answer.status,
      isOurs: answer.headers.get("content-type")?.includes("json") === true
    })),
    Effect.option
  )

/** Says whether a server answers, and whether it could be started where none does. */
const examineAddress = (url: string, isGiven: boolean, { host, port }: Environment) =>
  Effect.gen(function* () {
    const answer = yield* answersAt(url)
    if (Option.isSome(answer) && answer.value.isOurs)
      return answer.value.status === 200
        ? ok("server", `A server is ready at ${url}.`)
        : fault(
            "server",
            `The server at ${url} responds but is not ready (status ${answer.value.status}).`,
            `curl -s ${url}/ready`
          )
    if (isGiven) return fault("server", `No Tropism server responds at ${url}.`, "tropism start")
    if (Option.isSome(answer))
      return fault("port", `Another program responds at ${url}.`, `PORT=${port + 1} tropism start`)
    return yield* Effect.match(tryListening({ host, port }), {
      onSuccess: () => ok("port", `${port} on ${host} is free, and no server is running there.`),
      onFailure: ({ code, message }) =>
        fault(
          "port",
          code === "EADDRINUSE"
            ? `Port ${port} on ${host} is in use by another program.`
            : `Nothing can listen at ${host}:${port} (${message}).`,
          code === "EADDRINUSE" ? `PORT=${port + 1} tropism start` : "HOST=127.0.0.1 tropism start"
        )
    })
  })

const examineProjects = (client: ApiClient) =>
  Effect.gen(function* () {
    const me = yield* client.projects.me()
    const { items } = yield* client.projects.list({ query: { limit: limits.projectsExamined } })
    const findings: Array<Finding> = [
      items.length === 0 && me.projectIds !== null
        ? warn(
            "token",
            `The token of ${me.userId} is valid but has no access to any project.`,
            "tropism members add USER --role viewer"
          )
        : ok(
            "token",
            `Valid: ${me.userId}, ${me.role}, ${items.length === 1 ? "1 project" : `${items.length} projects`}.`
          )
    ]
    for (const project of items) {
      const health = yield* client.health.get({ params: { projectId: project.id } })
      findings.push(...projectFindings(project, health))
    }
    const { stopped } = yield* client.killSwitch.ofServer()
    const release = "tropism kill-switch off --server"
    // A project tells of one switch that holds it, its own before the server's.
    if (stopped !== null && !findings.some(({ fix }) => fix === release))
      findings.push(
        warn(
          "kill switch",
          `All agents of the server are stopped by a kill switch: ${printable(stopped.reason)}`,
          release
        )
      )
    return findings
  })

/** What the server says of a project's health: the verdict where it is well, else each thing that is not. */
const projectFindings = (project: Project, { findings, state, verdict }: ProjectHealth) =>
  state === "ok"
    ? [ok("project", `"${project.name}": ${verdict}`)]
    : findings.flatMap(({ check, detail, fix, said, state }): ReadonlyArray<Finding> => {
        if (fix === null) return []
        const told = `"${project.name}": ${detail}${said === null ? "" : ` (${said})`}`
        const isOfServer = fix.endsWith("--server") || fix === "tropism doctor"
        const command = isOfServer ? fix : `${fix} --project ${project.id}`
        return [{ check, state, detail: told, fix: command }]
      })

/** Looks at the server that a command would ask. */
export const examineServer = (environment: Environment) =>
  Effect.gen(function* () {
    const given = yield* UrlFlag
    const url = Option.getOrElse(given, () => addressOf(environment.host, environment.port))
    const address = yield* examineAddress(url, Option.isSome(given), environment)
    if (address.check !== "server" || address.state !== "ok") return [address]
    const findings = yield* Effect.flatMap(readConnection, (connection: Connection) =>
      withClient(connection, examineProjects)
    ).pipe(
      Effect.catch(({ message }) =>
        Effect.succeed([
          fault("token", message, "export TROPISM_TOKEN=…, or TROPISM_DATA=the data folder of that server")
        ])
      )
    )
    return [address, ...findings]
  })
